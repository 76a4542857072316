"""The report of a run: one HTML page, made from the record in run.json alone.

write               reads the record, puts the sections together, writes report.html
headline            the box at the top: what was learned, what to do, what that is worth
data_section        what the data look like; why_section: why values are missing
graph_section       m-graphs; learned_section, learned_groups: learned probabilities
trust_sections      which learner to trust: assumptions, and predictions of unseen data
policy_sections     how precisely policies were computed, and what they are worth
certainty_sections  certificates, changes of the model, limitations
method_section      how the run was made, and how its policy is used
naming              what policies and learners are called, and how they are drawn
"""
