"""The same as execute_om.c in pyACL: loads an offline model, feeds its first input with 0, 1, 2, ... and prints what
its first output begins with. How it is started: docs/atc.md."""

import struct
import sys

import acl


def taken(answer):
    """What a call returns before its code; the program ends when the code is not 0."""
    *values, code = answer if isinstance(answer, tuple) else (answer,)
    if code != 0:
        sys.exit(f"error {code}: {acl.get_recent_err_msg()}")
    return values[0] if values else None


def buffers(desc, count, size_of):
    """A buffer of device memory for each input, or for each output, of a model."""
    dataset = acl.mdl.create_dataset()
    for index in range(count):
        size = size_of(desc, index)
        memory = taken(acl.rt.malloc(size, acl.ACL_MEM_MALLOC_HUGE_FIRST))
        taken(acl.rt.memset(memory, size, 0, size))
        taken(acl.mdl.add_dataset_buffer(dataset, acl.create_data_buffer(memory, size)))
    return dataset


taken(acl.init())
taken(acl.rt.set_device(0))
model = taken(acl.mdl.load_from_file(sys.argv[1]))
desc = acl.mdl.create_desc()
taken(acl.mdl.get_desc(desc, model))
inputs = buffers(desc, acl.mdl.get_num_inputs(desc), acl.mdl.get_input_size_by_index)
outputs = buffers(desc, acl.mdl.get_num_outputs(desc), acl.mdl.get_output_size_by_index)

numbers = acl.mdl.get_input_size_by_index(desc, 0) // 4
data = struct.pack(f"{numbers}f", *range(numbers))
first = acl.get_data_buffer_addr(acl.mdl.get_dataset_buffer(inputs, 0))
taken(acl.rt.memcpy(first, len(data), acl.util.bytes_to_ptr(data), len(data), acl.ACL_MEMCPY_HOST_TO_DEVICE))
taken(acl.mdl.execute(model, inputs, outputs))
size = acl.mdl.get_output_size_by_index(desc, 0)
result = bytes(size)
taken(acl.rt.memcpy(acl.util.bytes_to_ptr(result), size,
                    acl.get_data_buffer_addr(acl.mdl.get_dataset_buffer(outputs, 0)), size,
                    acl.ACL_MEMCPY_DEVICE_TO_HOST))
print(f"{acl.mdl.get_output_name_by_index(desc, 0)}: {size // 4} numbers, the first is "
      f"{struct.unpack_from('f', result)[0]:g}")
taken(acl.mdl.unload(model))
taken(acl.mdl.destroy_desc(desc))
taken(acl.rt.reset_device(0))
taken(acl.finalize())
