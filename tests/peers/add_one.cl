// The kernel of rocr.c, for a grid of workgroups of 64. Compiler builtins: no device library needed.
kernel void add_one(global int *data) {
    data[__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x()] += 1;
}
