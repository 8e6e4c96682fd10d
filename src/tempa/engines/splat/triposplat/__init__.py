"""TripoSplat, one picture to Gaussians: Tempa's adapter to an operator's checkout of it.

The model's two source files and its weights are never part of Tempa. Light to import, for the server:
`options`, `files`, `weights`, `fitness`. For the engine's own process: `runner`, and under it `modules` (the
two source files), `torch_side` (all that touches torch), `networks`, `stages`, `canvas`, `cloud`, `live`,
`lods`, `shortage`.
"""
