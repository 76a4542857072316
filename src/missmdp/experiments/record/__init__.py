"""What a run found, as typed records: `missmdp run` writes them to run.json, the report and the command line read them.

record        the records, from the whole (`RunRecord`) down to a single probability
coding        records as JSON and back, the JSON schema, and messages about damaged files
summary_text  what was found, in a few sentences
limitations   what the data of a run cannot tell, in sentences
"""
