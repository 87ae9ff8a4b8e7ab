"""The part of Ascend's adapter for TensorFlow that starts and ends a system (docs/python.md)."""
