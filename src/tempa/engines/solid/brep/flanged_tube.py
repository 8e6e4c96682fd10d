"""The flanged tube as an exact boundary representation.

Why by hand: on 120 random feasible tubes whose holes meet the fillet, cutting the filleted tube
with the kernel's n-ary boolean (OCCT 8.0.1) was off by more than 1e-9 in 52, by up to 8 %, most
of them valid by BRepCheck and without a warning. Here planes, cylinders and tori are exact, and
the one curve that is not elementary (hole on fillet) is followed to 1e-10 of the hole's radius.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from OCP.Geom import Geom_Circle, Geom_CylindricalSurface, Geom_Line, Geom_Plane, Geom_ToroidalSurface
from OCP.gp import gp_Ax2, gp_Ax3, gp_Dir, gp_Pnt

from tempa.engines.solid.brep import sheets
from tempa.engines.solid.brep.bites import ...
