"""torch_npu.testing: what tests of operators import. Tensors are compared as the vendor's package does."""
