"""Where jobs run: this process, several on this machine, a Ray cluster, SLURM. They know of no
comparison.
"""
