"""What is planned of the programs of a launch.

grid_order.py     which dimension of the grid counts the fastest
idle_programs.py  which programs do nothing, so that the loop over programs leaves them out
streams.py        stores that bypass the caches, as no program of the launch reads them
work.py           how much there is to do
"""
