"""Pictures: what their headers show (`door`), their pixels (`decode`), what stands out (`foreground`).

Engines call `intake.read`, in their child processes. `door`, `facts` and `headers` load neither Pillow nor
numpy: the server itself calls them.
"""
