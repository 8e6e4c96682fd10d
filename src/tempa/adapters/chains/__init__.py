"""PLUG-INS of the port `settlement.ports.Chain`: nodes that tell what happened on the chain."""
