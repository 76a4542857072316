"""Why values go missing: which type, what drives it, and which learner suits.

`diagnose` asks, `result` is the answer. `classes` finds the best structure in each class of reasons, and what drives
each block; `nested_tests` tests each class within the next; `snapshots` stands for a log of which only single
observations are used. Large models are diagnosed in clusters, which `apart` puts together.
"""
