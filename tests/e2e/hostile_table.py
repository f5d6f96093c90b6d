"""The hostile table, whole: see hostile_row.py for what a row says."""

import hostile_arrays
import hostile_frames
import hostile_infer

ROWS = hostile_frames.ROWS + hostile_infer.ROWS + hostile_arrays.ROWS
