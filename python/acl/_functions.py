"""The functions of pyACL, one line each: name = C function(parameters) -> what it returns.

A parameter is `name:kind`. What Python passes stands in the order of C, without these:

    &name:kind      C writes it; Python gets it back, before the code of the call
    len(name):kind  the length of another parameter (of a text: its bytes)

and `name:kind=` is passed and returned, `name:kind?` may be left out (null then).

Kinds: i8 ... u64, size, f32; ptr, an address or a handle as an int; str; text[n], a buffer of n
characters (n may be a parameter); [kind], a list; [kind n], a list of n that C writes; [2 i64], a
list of pairs; [[i64]], a list of lists with their number and lengths in front, as C takes it; and
the structs of _structs.py by name, which are dicts in Python.

Without `->` the function returns an error code, the last value that Python gets; with `-> none`
nothing.
Functions that this does not say are in _by_hand.py.
"""

FUNCTIONS = {
    "": """
init = aclInit(config_path:str?)
finalize = aclFinalize()
get_version = aclrtGetVersion(&major_version:i32, &minor_version:i32, &patch_version:i32)
get_soc_name = aclrtGetSocName() -> str
float16_to_float = aclFloat16ToFloat(value:u16) -> f32
float_to_float16 = aclFloatToFloat16(value:f32) -> u16
create_data_buffer = aclCreateDataBuffer(data:ptr, size:size) -> ptr
destroy_data_buffer = aclDestroyDataBuffer(data_buffer:ptr)
get_data_buffer_addr = aclGetDataBufferAddr(data_buffer:ptr) -> ptr
get_data_buffer_size = aclGetDataBufferSize(data_buffer:ptr) -> u32
get_data_buffer_size_v2 = aclGetDataBufferSizeV2(data_buffer:ptr) -> size
update_data_buffer = aclUpdateDataBuffer(data_buffer:ptr, data:ptr, size:size)
data_type_size = aclDataTypeSize(data_type:i32) -> size
create_tensor_desc = aclCreateTensorDesc(data_type:i32, len(dims):i32, dims:[i64], format:i32)
    -> ptr
destroy_tensor_desc = aclDestroyTensorDesc(desc:ptr) -> none
get_tensor_desc_type = aclGetTensorDescType(desc:ptr) -> i32
get_tensor_desc_format = aclGetTensorDescFormat(desc:ptr) -> i32
get_tensor_desc_size = aclGetTensorDescSize(desc:ptr) -> size
get_tensor_desc_element_count = aclGetTensorDescElementCount(desc:ptr) -> size
get_tensor_desc_num_dims = aclGetTensorDescNumDims(desc:ptr) -> size
get_tensor_desc_dim = aclGetTensorDescDim(desc:ptr, index:size) -> i64
get_tensor_desc_name = aclGetTensorDescName(desc:ptr) -> str
set_tensor_desc_name = aclSetTensorDescName(desc:ptr, name:str) -> none
trans_tensor_desc_format = aclTransTensorDescFormat(src_desc:ptr, dst_format:i32, &dst_desc:ptr)
set_tensor_storage_format = aclSetTensorStorageFormat(desc:ptr, format:i32)
set_tensor_storage_shape = aclSetTensorStorageShape(desc:ptr, len(dims):i32, dims:[i64])
set_tensor_format = aclSetTensorFormat(desc:ptr, format:i32)
set_tensor_shape = aclSetTensorShape(desc:ptr, len(dims):i32, dims:[i64])
set_tensor_origin_format = aclSetTensorOriginFormat(desc:ptr, format:i32)
set_tensor_dynamic_input = aclSetTensorDynamicInput(desc:ptr, dynamic_input_name:str)
set_tensor_origin_shape = aclSetTensorOriginShape(desc:ptr, len(dims):i32, dims:[i64])
set_tensor_shape_range = aclSetTensorShapeRange(desc:ptr, len(dims_range):size, dims_range:[2
    i64])
get_tensor_desc_address = aclGetTensorDescAddress(desc:ptr) -> ptr
get_tensor_desc_by_index = aclGetTensorDescByIndex(desc:ptr, index:size) -> ptr
get_tensor_desc_dim_range = aclGetTensorDescDimRange(desc:ptr, index:size, dim_range_num:size,
    &dim_range:[i64 dim_range_num])
get_tensor_desc_dim_v2 = aclGetTensorDescDimV2(desc:ptr, index:size, &dim_size:i64)
set_tensor_place_ment = aclSetTensorPlaceMent(desc:ptr, mem_type:i32)
set_tensor_const = aclSetTensorConst(desc:ptr, data_buffer:ptr, length:size)
set_tensor_value_range = aclSetTensorValueRange(desc:ptr, len(value_range):size, value_range:[2
    i64])
get_cann_attribute = aclGetCannAttribute(cann_attr:i32, &value:i32)
get_device_capability = aclGetDeviceCapability(device_id:u32, device_info:i32, &value:i64)
get_cann_version = aclsysGetCANNVersion(name:i32, &version:CannVersion)
finalize_reference = aclFinalizeReference(&ref_count:u64)
get_version_str = aclsysGetVersionStr(pkg_name:str, &version_str:text[128])
get_compileopt_size = aclGetCompileoptSize(opt:i32) -> size
set_compileopt = aclSetCompileopt(opt:i32, value:str)
""",
    "rt": """
set_device = aclrtSetDevice(device_id:i32)
reset_device = aclrtResetDevice(device_id:i32)
reset_device_force = aclrtResetDeviceForce(device_id:i32)
get_device = aclrtGetDevice(&device_id:i32)
set_device_sat_mode = aclrtSetDeviceSatMode(mode:i32)
get_device_sat_mode = aclrtGetDeviceSatMode(&mode:i32)
get_run_mode = aclrtGetRunMode(&run_mode:i32)
set_ts_device = aclrtSetTsDevice(ts_id:i32)
get_device_count = aclrtGetDeviceCount(&count:u32)
create_context = aclrtCreateContext(&context:ptr, device_id:i32)
destroy_context = aclrtDestroyContext(context:ptr)
set_context = aclrtSetCurrentContext(context:ptr)
get_context = aclrtGetCurrentContext(&context:ptr)
ctx_get_current_default_stream = aclrtCtxGetCurrentDefaultStream(&stream:ptr)
get_overflow_status = aclrtGetOverflowStatus(output_addr:ptr, output_size:size, stream:ptr)
reset_overflow_status = aclrtResetOverflowStatus(stream:ptr)
malloc = aclrtMalloc(&dev_ptr:ptr, size:size, policy:i32)
free = aclrtFree(dev_ptr:ptr)
get_mem_info = aclrtGetMemInfo(attr:i32, &free:size, &total:size)
malloc_cached = aclrtMallocCached(&dev_ptr:ptr, size:size, policy:i32)
mem_flush = aclrtMemFlush(dev_ptr:ptr, size:size)
mem_invalidate = aclrtMemInvalidate(dev_ptr:ptr, size:size)
malloc_host = aclrtMallocHost(&host_ptr:ptr, size:size)
free_host = aclrtFreeHost(host_ptr:ptr)
memcpy = aclrtMemcpy(dst:ptr, dest_max:size, src:ptr, count:size, kind:i32)
memcpy_async = aclrtMemcpyAsync(dst:ptr, dest_max:size, src:ptr, count:size, kind:i32, stream:ptr)
memset = aclrtMemset(dev_ptr:ptr, max_count:size, value:i32, count:size)
memset_async = aclrtMemsetAsync(dev_ptr:ptr, max_count:size, value:i32, count:size, stream:ptr)
create_stream = aclrtCreateStream(&stream:ptr)
create_stream_with_config = aclrtCreateStreamWithConfig(&stream:ptr, priority:u32, flag:u32)
destroy_stream = aclrtDestroyStream(stream:ptr)
destroy_stream_force = aclrtDestroyStreamForce(stream:ptr)
set_stream_overflow_switch = aclrtSetStreamOverflowSwitch(stream:ptr, flag:u32)
get_stream_overflow_switch = aclrtGetStreamOverflowSwitch(stream:ptr, &flag:u32)
set_stream_failure_mode = aclrtSetStreamFailureMode(stream:ptr, mode:u64)
stream_query = aclrtStreamQuery(stream:ptr, &status:i32)
create_event = aclrtCreateEvent(&event:ptr)
create_event_with_flag = aclrtCreateEventWithFlag(&event:ptr, flag:u32)
create_event_ex_with_flag = aclrtCreateEventExWithFlag(&event:ptr, flag:u32)
destroy_event = aclrtDestroyEvent(event:ptr)
synchronize_stream = aclrtSynchronizeStream(stream:ptr)
synchronize_stream_with_timeout = aclrtSynchronizeStreamWithTimeout(stream:ptr, timeout:i32)
process_report = aclrtProcessReport(timeout:i32)
subscribe_report = aclrtSubscribeReport(thread_id:u64, stream:ptr)
unsubscribe_report = aclrtUnSubscribeReport(thread_id:u64, stream:ptr)
synchronize_device = aclrtSynchronizeDevice()
record_event = aclrtRecordEvent(event:ptr, stream:ptr)
reset_event = aclrtResetEvent(event:ptr, stream:ptr)
query_event = aclrtQueryEvent(event:ptr, &status:i32)
query_event_status = aclrtQueryEventStatus(event:ptr, &status:i32)
query_event_wait_status = aclrtQueryEventWaitStatus(event:ptr, &status:i32)
synchronize_event = aclrtSynchronizeEvent(event:ptr)
synchronize_event_with_timeout = aclrtSynchronizeEventWithTimeout(event:ptr, timeout:i32)
event_elapsed_time = aclrtEventElapsedTime(&ms:f32, start_event:ptr, end_event:ptr)
event_get_timestamp = aclrtEventGetTimestamp(event:ptr, &timestamp:u64)
get_event_id = aclrtGetEventId(event:ptr, &event_id:u32)
get_event_avail_num = aclrtGetEventAvailNum(&event_count:u32)
stream_wait_event = aclrtStreamWaitEvent(stream:ptr, event:ptr)
stream_get_id = aclrtStreamGetId(stream:ptr, &stream_id:i32)
get_stream_available_num = aclrtGetStreamAvailableNum(&stream_count:u32)
get_thread_last_task_id = aclrtGetThreadLastTaskId(&task_id:u32)
reduce_async = aclrtReduceAsync(dst:ptr, src:ptr, count:u64, kind:i32, type:i32, stream:ptr,
    reserve:ptr)
get_error_code_from_exception_info = aclrtGetErrorCodeFromExceptionInfo(info:ptr) -> u32
get_task_id_from_exception_info = aclrtGetTaskIdFromExceptionInfo(info:ptr) -> u32
get_stream_id_from_exception_info = aclrtGetStreamIdFromExceptionInfo(info:ptr) -> u32
get_thread_id_from_exception_info = aclrtGetThreadIdFromExceptionInfo(info:ptr) -> u32
get_device_id_from_exception_info = aclrtGetDeviceIdFromExceptionInfo(info:ptr) -> u32
set_op_wait_timeout = aclrtSetOpWaitTimeout(timeout:u32)
set_op_execute_time_out = aclrtSetOpExecuteTimeOut(timeout:u32)
set_op_execute_timeout = aclrtSetOpExecuteTimeOut(timeout:u32)
memcpy2d = aclrtMemcpy2d(dst:ptr, dpitch:size, src:ptr, spitch:size, width:size, height:size,
    kind:i32)
memcpy2d_async = aclrtMemcpy2dAsync(dst:ptr, dpitch:size, src:ptr, spitch:size, width:size,
    height:size, kind:i32, stream:ptr)
reserve_mem_address = aclrtReserveMemAddress(&vir_ptr:ptr, size:size, alignment:size,
    expect_ptr:ptr, flags:u64)
release_mem_address = aclrtReleaseMemAddress(vir_ptr:ptr)
malloc_physical = aclrtMallocPhysical(&handle:ptr, size:size, prop:PhysicalMemProp, flags:u64)
free_physical = aclrtFreePhysical(handle:ptr)
map_mem = aclrtMapMem(vir_ptr:ptr, size:size, offset:size, handle:ptr, flags:u64)
unmap_mem = aclrtUnmapMem(vir_ptr:ptr)
mem_export_to_shareable_handle = aclrtMemExportToShareableHandle(handle:ptr, handle_type:i32,
    flags:u64, &shareable_handle:u64)
device_get_bare_tgid = aclrtDeviceGetBareTgid(&pid:i32)
mem_set_pid_to_shareable_handle = aclrtMemSetPidToShareableHandle(shareable_handle:u64,
    pids:[i32], len(pids):size)
mem_import_from_shareable_handle = aclrtMemImportFromShareableHandle(shareable_handle:u64,
    device_id:i32, &handle:ptr)
mem_get_allocation_granularity = aclrtMemGetAllocationGranularity(prop:PhysicalMemProp,
    option:i32, &granularity:size)
get_device_utilization_rate = aclrtGetDeviceUtilizationRate(device_id:i32,
    &utilization_info:UtilizationInfo)
query_device_status = aclrtQueryDeviceStatus(device_id:i32, &device_status:i32)
ctx_set_sys_param_opt = aclrtCtxSetSysParamOpt(opt:i32, value:i64)
ctx_get_sys_param_opt = aclrtCtxGetSysParamOpt(opt:i32, &value:i64)
set_sys_param_opt = aclrtSetSysParamOpt(opt:i32, value:i64)
get_sys_param_opt = aclrtGetSysParamOpt(opt:i32, &value:i64)
malloc_align32 = aclrtMallocAlign32(&dev_ptr:ptr, size:size, policy:i32)
allocator_create_desc = aclrtAllocatorCreateDesc() -> ptr
allocator_destroy_desc = aclrtAllocatorDestroyDesc(allocator_desc:ptr)
allocator_set_obj_to_desc = aclrtAllocatorSetObjToDesc(allocator_desc:ptr, allocator:ptr)
allocator_unregister = aclrtAllocatorUnregister(stream:ptr)
allocator_register = aclrtAllocatorRegister(stream:ptr, allocator_desc:ptr)
peek_at_last_error = aclrtPeekAtLastError(level:i32)
get_last_error = aclrtGetLastError(level:i32)
synchronize_device_with_timeout = aclrtSynchronizeDeviceWithTimeout(timeout:i32)
cmo_async = aclrtCmoAsync(src:ptr, size:size, cmo_type:i32, stream:ptr)
device_task_abort = aclrtDeviceTaskAbort(device_id:i32, timeout:u32)
memcpy_async_with_condition = aclrtMemcpyAsyncWithCondition(dst:ptr, dest_max:size, src:ptr,
    count:size, kind:i32, stream:ptr)
stream_abort = aclrtStreamAbort(stream:ptr)
pointer_get_attributes = aclrtPointerGetAttributes(ptr:ptr, &attributes:PtrAttributes)
host_register = aclrtHostRegister(ptr:ptr, size:u64, type:i32, &dev_ptr:ptr)
host_unregister = aclrtHostUnregister(ptr:ptr)
get_memcpy_desc_size = aclrtGetMemcpyDescSize(kind:i32, &desc_size:size)
set_memcpy_desc = aclrtSetMemcpyDesc(desc:ptr=, kind:i32, src_addr:ptr, dst_addr:ptr,
    count:size, config:ptr)
memcpy_async_with_desc = aclrtMemcpyAsyncWithDesc(desc:ptr, kind:i32, stream:ptr)
value_write = aclrtValueWrite(dev_addr:ptr, value:u64, flag:u32, stream:ptr)
value_wait = aclrtValueWait(dev_addr:ptr, value:u64, flag:u32, stream:ptr)
device_can_access_peer = aclrtDeviceCanAccessPeer(&can_access_peer:i32, device_id:i32,
    peer_device_id:i32)
device_enable_peer_access = aclrtDeviceEnablePeerAccess(peer_device_id:i32, flags:u32)
device_disable_peer_access = aclrtDeviceDisablePeerAccess(peer_device_id:i32)
ipc_mem_get_export_key = aclrtIpcMemGetExportKey(dev_ptr:ptr, size:size, &key:text[len],
    len:size, flags:u64)
ipc_mem_set_import_pid = aclrtIpcMemSetImportPid(key:str, pids:[i32], len(pids):size)
ipc_mem_import_by_key = aclrtIpcMemImportByKey(&dev_ptr:ptr, key:str, flags:u64)
ipc_mem_close = aclrtIpcMemClose(key:str)
get_device_info = aclrtGetDeviceInfo(device_id:u32, attr:i32, &value:i64)
device_get_stream_priority_range = aclrtDeviceGetStreamPriorityRange(&least_priority:i32,
    &greatest_priority:i32)
get_device_capability = aclrtGetDeviceCapability(device_id:i32, dev_feature_type:i32, &value:i32)
get_device_res_limit = aclrtGetDeviceResLimit(device_id:i32, type:i32, &value:u32)
set_device_res_limit = aclrtSetDeviceResLimit(device_id:i32, type:i32, value:u32)
reset_device_res_limit = aclrtResetDeviceResLimit(device_id:i32)
get_devices_topo = aclrtGetDevicesTopo(device_id:u32, other_device_id:u32, &value:u64)
create_notify = aclrtCreateNotify(&notify:ptr, flag:u64)
destroy_notify = aclrtDestroyNotify(notify:ptr)
record_notify = aclrtRecordNotify(notify:ptr, stream:ptr)
wait_and_reset_notify = aclrtWaitAndResetNotify(notify:ptr, stream:ptr, timeout:u32)
get_notify_id = aclrtGetNotifyId(notify:ptr, &notify_id:u32)
notify_batch_reset = aclrtNotifyBatchReset(notifies:[ptr], len(notifies):size)
notify_get_export_key = aclrtNotifyGetExportKey(notify:ptr, &key:text[len], len:size, flags:u64)
notify_set_import_pid = aclrtNotifySetImportPid(notify:ptr, pids:[i32], len(pids):size)
notify_import_by_key = aclrtNotifyImportByKey(&notify:ptr, key:str, flags:u64)
get_stream_res_limit = aclrtGetStreamResLimit(stream:ptr, type:i32, &value:u32)
set_stream_res_limit = aclrtSetStreamResLimit(stream:ptr, type:i32, value:u32)
reset_stream_res_limit = aclrtResetStreamResLimit(stream:ptr)
use_stream_res_in_current_thread = aclrtUseStreamResInCurrentThread(stream:ptr)
unuse_stream_res_in_current_thread = aclrtUnuseStreamResInCurrentThread(stream:ptr)
get_res_in_current_thread = aclrtGetResInCurrentThread(type:i32, &value:u32)
get_logic_dev_id_by_user_dev_id = aclrtGetLogicDevIdByUserDevId(user_devid:i32, &logic_dev_id:i32)
get_user_dev_id_by_logic_dev_id = aclrtGetUserDevIdByLogicDevId(logic_dev_id:i32, &user_devid:i32)
get_logic_dev_id_by_phy_dev_id = aclrtGetLogicDevIdByPhyDevId(phy_dev_id:i32, &logic_dev_id:i32)
get_phy_dev_id_by_logic_dev_id = aclrtGetPhyDevIdByLogicDevId(logic_dev_id:i32, &phy_dev_id:i32)
set_op_execute_timeout_v2 = aclrtSetOpExecuteTimeOutV2(timeout:u64, &actual_timeout:u64)
get_op_timeout_interval = aclrtGetOpTimeOutInterval(&interval:u64)
get_op_execute_timeout = aclrtGetOpExecuteTimeout(&timeout_ms:u32)
device_get_uuid = aclrtDeviceGetUuid(device_id:i32, &uuid:Uuid)
device_peer_access_status = aclrtDevicePeerAccessStatus(device_id:i32, peer_device_id:i32,
    &status:i32)
host_register_v2 = aclrtHostRegisterV2(ptr:ptr, size:u64, flag:u32)
host_get_device_pointer = aclrtHostGetDevicePointer(p_host:ptr, &p_device:ptr, flag:u32)
set_group = aclrtSetGroup(group_id:i32)
get_group_count = aclrtGetGroupCount(&count:u32)
create_group_info = aclrtCreateGroupInfo() -> ptr
destroy_group_info = aclrtDestroyGroupInfo(group_info:ptr)
get_all_group_info = aclrtGetAllGroupInfo(group_info:ptr)
binary_load_from_file = aclrtBinaryLoadFromFile(bin_path:str, options:ptr, &bin_handle:ptr)
binary_load_from_data = aclrtBinaryLoadFromData(data:ptr, length:size, options:ptr,
    &bin_handle:ptr)
binary_unload = aclrtBinaryUnLoad(bin_handle:ptr)
binary_get_function = aclrtBinaryGetFunction(bin_handle:ptr, kernel_name:str, &func_handle:ptr)
create_binary = aclrtCreateBinary(data:ptr, data_len:size) -> ptr
destroy_binary = aclrtDestroyBinary(binary:ptr)
binary_load = aclrtBinaryLoad(binary:ptr, &bin_handle:ptr)
launch_kernel = aclrtLaunchKernel(func_handle:ptr, num_blocks:u32, args_data:ptr,
    args_size:size, stream:ptr)
get_function_name = aclrtGetFunctionName(func_handle:ptr, max_len:u32, &name:text[max_len])
get_function_addr = aclrtGetFunctionAddr(func_handle:ptr, &aic_addr:ptr, &aiv_addr:ptr)
""",
    "mdl": """
load_from_file = aclmdlLoadFromFile(model_path:str, &model_id:u32)
unload = aclmdlUnload(model_id:u32)
query_size = aclmdlQuerySize(file_name:str, &work_size:size, &weight_size:size)
execute = aclmdlExecute(model_id:u32, input:ptr, output:ptr)
execute_async = aclmdlExecuteAsync(model_id:u32, input:ptr, output:ptr, stream:ptr)
create_dataset = aclmdlCreateDataset() -> ptr
destroy_dataset = aclmdlDestroyDataset(dataset:ptr)
get_dataset_buffer = aclmdlGetDatasetBuffer(dataset:ptr, index:size) -> ptr
get_dataset_num_buffers = aclmdlGetDatasetNumBuffers(dataset:ptr) -> size
add_dataset_buffer = aclmdlAddDatasetBuffer(dataset:ptr=, data_buffer:ptr)
get_output_size_by_index = aclmdlGetOutputSizeByIndex(model_desc:ptr, index:size) -> size
get_num_inputs = aclmdlGetNumInputs(model_desc:ptr) -> size
get_num_outputs = aclmdlGetNumOutputs(model_desc:ptr) -> size
get_input_size_by_index = aclmdlGetInputSizeByIndex(model_desc:ptr, index:size) -> size
create_desc = aclmdlCreateDesc() -> ptr
get_desc = aclmdlGetDesc(model_desc:ptr, model_id:u32)
destroy_desc = aclmdlDestroyDesc(model_desc:ptr)
load_from_mem = aclmdlLoadFromMem(model:ptr, model_size:size, &model_id:u32)
load_from_file_with_mem = aclmdlLoadFromFileWithMem(model_path:str, &model_id:u32, work_ptr:ptr,
    work_size:size, weight_ptr:ptr, weight_size:size)
load_from_mem_with_mem = aclmdlLoadFromMemWithMem(model:ptr, model_size:size, &model_id:u32,
    work_ptr:ptr, work_size:size, weight_ptr:ptr, weight_size:size)
query_size_from_mem = aclmdlQuerySizeFromMem(model:ptr, model_size:size, &work_size:size,
    &weight_size:size)
set_dynamic_batch_size = aclmdlSetDynamicBatchSize(model_id:u32, dataset:ptr, index:size,
    batch_size:u64)
set_dynamic_hw_size = aclmdlSetDynamicHWSize(model_id:u32, dataset:ptr, index:size, height:u64,
    width:u64)
get_cur_output_dims = aclmdlGetCurOutputDims(model_desc:ptr, index:size, &dims:IODims)
create_aipp = aclmdlCreateAIPP(batch_size:u64) -> ptr
destroy_aipp = aclmdlDestroyAIPP(aipp_parms_set:ptr)
get_input_dims = aclmdlGetInputDims(model_desc:ptr, index:size, &dims:IODims)
get_input_dims_v2 = aclmdlGetInputDimsV2(model_desc:ptr, index:size, &dims:IODims)
get_output_dims = aclmdlGetOutputDims(model_desc:ptr, index:size, &dims:IODims)
get_input_name_by_index = aclmdlGetInputNameByIndex(model_desc:ptr, index:size) -> str
get_output_name_by_index = aclmdlGetOutputNameByIndex(model_desc:ptr, index:size) -> str
get_input_format = aclmdlGetInputFormat(model_desc:ptr, index:size) -> i32
get_output_format = aclmdlGetOutputFormat(model_desc:ptr, index:size) -> i32
get_input_data_type = aclmdlGetInputDataType(model_desc:ptr, index:size) -> i32
get_output_data_type = aclmdlGetOutputDataType(model_desc:ptr, index:size) -> i32
get_input_index_by_name = aclmdlGetInputIndexByName(model_desc:ptr, name:str, &index:size)
get_output_index_by_name = aclmdlGetOutputIndexByName(model_desc:ptr, name:str, &index:size)
get_dynamic_batch = aclmdlGetDynamicBatch(model_desc:ptr, &batch:Batch)
get_dynamic_hw = aclmdlGetDynamicHW(model_desc:ptr, index:size, &hw:HW)
set_aipp_input_format = aclmdlSetAIPPInputFormat(aipp_parms_set:ptr, input_format:i32)
set_aipp_csc_params = aclmdlSetAIPPCscParams(aipp_parms_set:ptr, csc_switch:i8,
    csc_matrix_r0_c0:i16, csc_matrix_r0_c1:i16, csc_matrix_r0_c2:i16, csc_matrix_r1_c0:i16,
    csc_matrix_r1_c1:i16, csc_matrix_r1_c2:i16, csc_matrix_r2_c0:i16, csc_matrix_r2_c1:i16,
    csc_matrix_r2_c2:i16, csc_output_bias_r0:u8, csc_output_bias_r1:u8, csc_output_bias_r2:u8,
    csc_input_bias_r0:u8, csc_input_bias_r1:u8, csc_input_bias_r2:u8)
set_aipp_rbuv_swap_switch = aclmdlSetAIPPRbuvSwapSwitch(aipp_parms_set:ptr, rbuv_swap_switch:i8)
set_aipp_ax_swap_switch = aclmdlSetAIPPAxSwapSwitch(aipp_parms_set:ptr, ax_swap_switch:i8)
set_aipp_src_image_size = aclmdlSetAIPPSrcImageSize(aipp_parms_set:ptr, src_image_size_w:i32,
    src_image_size_h:i32)
set_aipp_crop_params = aclmdlSetAIPPCropParams(aipp_parms_set:ptr, crop_switch:i8,
    crop_start_pos_w:i32, crop_start_pos_h:i32, crop_size_w:i32, crop_size_h:i32,
    batch_index:u64)
set_aipp_padding_params = aclmdlSetAIPPPaddingParams(aipp_parms_set:ptr, padding_switch:i8,
    padding_size_top:i32, padding_size_bottom:i32, padding_size_left:i32,
    padding_size_right:i32, batch_index:u64)
set_aipp_dtc_pixel_mean = aclmdlSetAIPPDtcPixelMean(aipp_parms_set:ptr, dtc_pixel_mean_chn0:i16,
    dtc_pixel_mean_chn1:i16, dtc_pixel_mean_chn2:i16, dtc_pixel_mean_chn3:i16, batch_index:u64)
set_aipp_dtc_pixel_min = aclmdlSetAIPPDtcPixelMin(aipp_parms_set:ptr, dtc_pixel_min_chn0:f32,
    dtc_pixel_min_chn1:f32, dtc_pixel_min_chn2:f32, dtc_pixel_min_chn3:f32, batch_index:u64)
set_aipp_pixel_var_reci = aclmdlSetAIPPPixelVarReci(aipp_parms_set:ptr,
    dtc_pixel_var_reci_chn0:f32, dtc_pixel_var_reci_chn1:f32, dtc_pixel_var_reci_chn2:f32,
    dtc_pixel_var_reci_chn3:f32, batch_index:u64)
set_aipp_scf_params = aclmdlSetAIPPScfParams(aipp_parms_set:ptr, scf_switch:i8,
    scf_input_size_w:i32, scf_input_size_h:i32, scf_output_size_w:i32, scf_output_size_h:i32,
    batch_index:u64)
set_input_aipp = aclmdlSetInputAIPP(model_id:u32, dataset:ptr, index:size, aipp_parms_set:ptr)
set_input_dynamic_dims = aclmdlSetInputDynamicDims(model_id:u32, dataset:ptr, index:size,
    dims:IODims)
get_input_dynamic_gear_count = aclmdlGetInputDynamicGearCount(model_desc:ptr, index:size,
    &gear_count:size)
get_input_dynamic_dims = aclmdlGetInputDynamicDims(model_desc:ptr, index:size, &dims:[IODims
    gear_count], gear_count:size)
create_and_get_op_desc = aclmdlCreateAndGetOpDesc(device_id:u32, stream_id:u32, task_id:u32,
    &op_name:text[op_name_len], op_name_len:size, &input_desc:ptr, &num_inputs:size,
    &output_desc:ptr, &num_outputs:size)
init_dump = aclmdlInitDump()
finalize_dump = aclmdlFinalizeDump()
get_aipp_type = aclmdlGetAippType(model_id:u32, index:size, &type:i32,
    &dynamic_attached_data_index:size)
set_aipp_by_input_index = aclmdlSetAIPPByInputIndex(model_id:u32, dataset:ptr, index:size,
    aipp_parms_set:ptr)
set_dump = aclmdlSetDump(dump_cfg_path:str?)
load_with_config = aclmdlLoadWithConfig(handle:ptr, &model_id:u32)
create_config_handle = aclmdlCreateConfigHandle() -> ptr
destroy_config_handle = aclmdlDestroyConfigHandle(handle:ptr)
get_tensor_real_name = aclmdlGetTensorRealName(model_desc:ptr, name:str) -> str
set_dataset_tensor_desc = aclmdlSetDatasetTensorDesc(dataset:ptr=, tensor_desc:ptr, index:size)
get_dataset_tensor_desc = aclmdlGetDatasetTensorDesc(dataset:ptr, index:size) -> ptr
get_op_attr = aclmdlGetOpAttr(model_desc:ptr, op_name:str, attr:str) -> str
get_aipp_data_size = aclmdlGetAippDataSize(batch_size:u64, &size:size)
create_exec_config_handle = aclmdlCreateExecConfigHandle() -> ptr
destroy_exec_config_handle = aclmdlDestroyExecConfigHandle(handle:ptr)
execute_v2 = aclmdlExecuteV2(model_id:u32, input:ptr, output:ptr, stream:ptr, handle:ptr)
get_desc_from_file = aclmdlGetDescFromFile(model_desc:ptr, model_path:str)
get_desc_from_mem = aclmdlGetDescFromMem(model_desc:ptr, model:ptr, model_size:size)
get_input_dims_range = aclmdlGetInputDimsRange(model_desc:ptr, index:size,
    &dims_range:IODimsRange)
bundle_load_from_file = aclmdlBundleLoadFromFile(model_path:str, &bundle_id:u32)
bundle_load_from_mem = aclmdlBundleLoadFromMem(model:ptr, model_size:size, &bundle_id:u32)
bundle_unload = aclmdlBundleUnload(bundle_id:u32)
bundle_get_model_id = aclmdlBundleGetModelId(bundle_id:u32, index:size, &model_id:u32)
bundle_get_model_num = aclmdlBundleGetModelNum(bundle_id:u32, &model_num:size)
load_from_file_with_q = aclmdlLoadFromFileWithQ(model_path:str, &model_id:u32, input_q:ptr,
    input_q_num:size, output_q:ptr, output_q_num:size)
load_from_mem_with_q = aclmdlLoadFromMemWithQ(model:ptr, model_size:size, &model_id:u32,
    input_q:ptr, input_q_num:size, output_q:ptr, output_q_num:size)
""",
    "op": """
set_model_dir = aclopSetModelDir(model_dir:str)
load = aclopLoad(model:ptr, model_size:size)
execute = aclopExecute(op_type:str, len(input_desc):i32, input_desc:[ptr], inputs:[ptr],
    len(output_desc):i32, output_desc:[ptr], outputs:[ptr], attr:ptr, stream:ptr)
execute_with_handle = aclopExecWithHandle(handle:ptr, len(inputs):i32, inputs:[ptr],
    len(outputs):i32, outputs:[ptr], stream:ptr)
cast = aclopCast(src_desc:ptr, src_buffer:ptr, dst_desc:ptr, dst_buffer:ptr, truncate:u8,
    stream:ptr)
create_handle_for_cast = aclopCreateHandleForCast(src_desc:ptr, dst_desc:ptr, truncate:u8,
    &handle:ptr)
create_attr = aclopCreateAttr() -> ptr
destroy_attr = aclopDestroyAttr(attr:ptr) -> none
set_attr_bool = aclopSetAttrBool(attr:ptr, attr_name:str, attr_value:u8)
set_attr_int = aclopSetAttrInt(attr:ptr, attr_name:str, attr_value:i64)
set_attr_float = aclopSetAttrFloat(attr:ptr, attr_name:str, attr_value:f32)
set_attr_string = aclopSetAttrString(attr:ptr, attr_name:str, attr_value:str)
set_attr_list_bool = aclopSetAttrListBool(attr:ptr, attr_name:str, len(values):i32, values:[u8])
set_attr_list_int = aclopSetAttrListInt(attr:ptr, attr_name:str, len(values):i32, values:[i64])
set_attr_list_float = aclopSetAttrListFloat(attr:ptr, attr_name:str, len(values):i32,
    values:[f32])
set_attr_list_string = aclopSetAttrListString(attr:ptr, attr_name:str, len(values):i32,
    values:[str])
set_attr_list_list_int = aclopSetAttrListListInt(attr:ptr, attr_name:str, values:[[i64]])
create_handle = aclopCreateHandle(op_type:str, len(input_desc):i32, input_desc:[ptr],
    len(output_desc):i32, output_desc:[ptr], op_attr:ptr, &handle:ptr)
destroy_handle = aclopDestroyHandle(handle:ptr) -> none
start_dump_args = aclopStartDumpArgs(dump_type:u32, path:str)
stop_dump_args = aclopStopDumpArgs(dump_type:u32)
unregister_compile_func = aclopUnregisterCompileFunc(op_type:str)
create_kernel = aclopCreateKernel(op_type:str, kernel_id:str, kernel_name:str, bin_data:ptr,
    bin_size:i32, enginetype:i32, deallocator:i32)
set_kernel_args = aclopSetKernelArgs(kernel_desc:ptr, kernel_id:str, block_dim:u32, args:ptr,
    arg_size:u32)
set_kernel_workspace_sizes = aclopSetKernelWorkspaceSizes(kernel_desc:ptr, num_workspaces:i32,
    workspace_sizes:ptr)
update_params = aclopUpdateParams(op_type:str, len(input_desc):i32, input_desc:[ptr],
    len(output_desc):i32, output_desc:[ptr], attr:ptr)
execute_v2 = aclopExecuteV2(op_type:str, len(input_desc):i32, input_desc:[ptr], inputs:[ptr],
    len(output_desc):i32, output_desc:[ptr], outputs:[ptr], attr:ptr, stream:ptr)
infer_shape = aclopInferShape(op_type:str, len(input_desc):i32, input_desc:[ptr], inputs:[ptr],
    num_outputs:i32, output_desc:[ptr], attr:ptr)
set_attr_data_type = aclopSetAttrDataType(attr:ptr=, attr_name:str, attr_value:i32)
set_attr_list_data_type = aclopSetAttrListDataType(attr:ptr=, attr_name:str, len(values):i32,
    values:[i32])
set_max_op_queue_num = aclopSetMaxOpQueueNum(max_op_num:u64)
compile = aclopCompile(op_type:str, len(input_desc):i32, input_desc:[ptr], len(output_desc):i32,
    output_desc:[ptr], attr:ptr, engine_type:i32, compile_flag:i32, op_path:str)
compile_and_execute = aclopCompileAndExecute(op_type:str, len(input_desc):i32, input_desc:[ptr],
    inputs:[ptr], len(output_desc):i32, output_desc:[ptr], outputs:[ptr], attr:ptr,
    engine_type:i32, compile_flag:i32, op_path:str, stream:ptr)
compile_and_execute_v2 = aclopCompileAndExecuteV2(op_type:str, len(input_desc):i32,
    input_desc:[ptr], inputs:[ptr], len(output_desc):i32, output_desc:[ptr], outputs:[ptr],
    attr:ptr, engine_type:i32, compile_flag:i32, op_path:str, stream:ptr)
set_compile_flag = aclopSetCompileFlag(flag:i32)
""",
    "prof": """
create_config = aclprofCreateConfig(device_id_list:[u32], len(device_id_list):u32,
    aicore_metrics:i32, aicore_events:ptr, data_type_config:u64) -> ptr
destroy_config = aclprofDestroyConfig(profiler_config:ptr)
init = aclprofInit(profiler_result_path:str, len(profiler_result_path):size)
finalize = aclprofFinalize()
start = aclprofStart(profiler_config:ptr)
stop = aclprofStop(profiler_config:ptr)
model_subscribe = aclprofModelSubscribe(model_id:u32, prof_subscribe_config:ptr)
model_un_subscribe = aclprofModelUnSubscribe(model_id:u32)
model_unsubscribe = aclprofModelUnSubscribe(model_id:u32)
destroy_subscribe_config = aclprofDestroySubscribeConfig(prof_subscribe_config:ptr)
get_op_desc_size = aclprofGetOpDescSize(&op_desc_size:size)
get_op_num = aclprofGetOpNum(op_info:ptr, op_info_len:size, &op_number:u32)
get_op_type = aclprofGetOpType(op_info:ptr, op_info_len:size, index:u32,
    &op_type:text[op_type_len], op_type_len:size)
get_op_name = aclprofGetOpName(op_info:ptr, op_info_len:size, index:u32,
    &op_name:text[op_name_len], op_name_len:size)
get_op_start = aclprofGetOpStart(op_info:ptr, op_info_len:size, index:u32) -> u64
get_op_end = aclprofGetOpEnd(op_info:ptr, op_info_len:size, index:u32) -> u64
get_op_duration = aclprofGetOpDuration(op_info:ptr, op_info_len:size, index:u32) -> u64
get_model_id = aclprofGetModelId(op_info:ptr, op_info_len:size, index:u32) -> size
get_op_type_len = aclprofGetOpTypeLen(op_info:ptr, op_info_len:size, index:u32, &op_type_len:size)
get_op_name_len = aclprofGetOpNameLen(op_info:ptr, op_info_len:size, index:u32, &op_name_len:size)
get_step_timestamp = aclprofGetStepTimestamp(step_info:ptr, tag:i32, stream:ptr)
destroy_step_info = aclprofDestroyStepInfo(stepinfo:ptr) -> none
create_step_info = aclprofCreateStepInfo() -> ptr
create_stamp = aclprofCreateStamp() -> ptr
destroy_stamp = aclprofDestroyStamp(stamp:ptr) -> none
push = aclprofPush(stamp:ptr)
pop = aclprofPop()
range_start = aclprofRangeStart(stamp:ptr, &range_id:u32)
range_stop = aclprofRangeStop(range_id:u32)
set_stamp_trace_message = aclprofSetStampTraceMessage(stamp:ptr, msg:str, msg_len:u32)
mark = aclprofMark(stamp:ptr)
mark_ex = aclprofMarkEx(msg:str, len(msg):size, stream:ptr)
set_config = aclprofSetConfig(config_type:i32, config:str, len(config):size)
""",
}
