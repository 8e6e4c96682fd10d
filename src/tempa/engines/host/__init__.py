"""The engine host: kernels run in child processes that may crash, hang or eat memory.

Four kinds of process, each with its files. The *host* lives in the server: `engine_host`, `launch`,
`fork`, `zygote_handle`, `resident`, `resident_handle`, `seat`, `attempt`, `channel`, `watch`, `memory`,
`output`, `bounds`, `outcome`. The *zygote* is started by exec, once an engine module, and has the kernel
imported: `zygote`, `heap`. A *child* is forked from it for each attempt, ahead of its task: `child`,
`confine`. A *resident* process is started by exec, once an engine, keeps a model loaded and does the
attempts itself: `resident_start`, `resident_process`. What they say to one another: `protocol`, carried by
`control_line`.

Nothing is imported here: a zygote imports this package and must not bring the host's half along.
"""
