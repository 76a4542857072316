"""The main job, `missmdp run`: from a model and data to a policy, and what it is worth.

pipeline        `run`: checks what was given, and starts the work
settings        how a run is done; result: what it finds, in memory; folder: where it goes
work            one stage after another; stages: how people see them
reading         the data, and why values are missing
learning        what each learner learns, and which features matter in it
recommendation  which learner to trust, and why
solving         policies, baselines, and what all of them are worth
certifying      how far from optimal a policy can be
recording       all of it as the record that run.json holds; tables: as tables
"""
