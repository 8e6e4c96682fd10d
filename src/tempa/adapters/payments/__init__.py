"""PLUG-INS: who tells us of payments. Each judges a call and takes signatures out of it, nothing else."""
