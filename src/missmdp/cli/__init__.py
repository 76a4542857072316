"""The command `missmdp`: parsing and printing only.

- `main`: the group of commands and the program.
- `model_commands`, `learn_commands`, `solve_commands`, `evaluate_command`, `run_commands`, `reproduce_commands`:
  the commands with their options. They import the library only when they run, so `missmdp --help` is quick.
- `options`: options that several commands share. `files`: from typed words to models, policies and files to write.
- `evaluation_run`: what `evaluate` does. `printing`, `printing_results`, `printing_run`: what is printed.
- `failures`: how a command that fails ends, and its one line on standard error.
"""
