"""Finding the configuration of a kernel by timing.

decorator.py       @autotune                        config.py         one configuration
autotuner.py       Autotuner: what it chooses is launched; programs make classes of their own of it
checks.py          what can be wrong with it        report.py         what it says of its choice
pruning.py         which configurations are tried   key.py            what a choice holds for
trials.py          all of them, compiled ahead      trial.py          one, between its hooks
trial_timing.py    how long one is timed            contents.py       arrays that trials reset and restore
tuned_store.py     timings that are kept, in        tuned_file.py     files
fast_choice.py     choices in machine code          torch_autotuners.py   what torch.compile makes of them
"""
