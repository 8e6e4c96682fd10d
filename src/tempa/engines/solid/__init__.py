"""Solid modelling. `about` tells what the engines are and loads no kernel; `opencascade` is how one runs."""
