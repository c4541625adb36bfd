/* SPDX-License-Identifier: MIT
 *
 * Memory of a macOS machine.  There are no quotas and no groups; available is all memory that is
 * not used by programs, wired or compressed.
 */
#include "sysinfo_private.h"

#if defined(__APPLE__)

#include <mach/mach.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#include <unistd.h>

static uint64_t sysctl_number(const char *name)
{
    uint64_t value = 0; /* little-endian: also correct for values of 4 bytes */
    size_t n = sizeof value;
    return sysctlbyname(name, &value, &n, NULL, 0) == 0 ? value : TERN_UNKNOWN;
}

static uint64_t available(uint64_t total)
{
    vm_statistics64_data_t vm;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    mach_port_t host = mach_host_self();
    kern_return_t result = host_statistics64(host, HOST_VM_INFO64, (host_info64_t)&vm, &n);
    mach_port_deallocate(mach_task_self(), host);
    if (result != KERN_SUCCESS || total == TERN_UNKNOWN)
        return TERN_UNKNOWN;
    uint64_t program = tn_fact_minus(vm.internal_page_count, vm.purgeable_count);
    uint64_t pages = program + vm.wire_count + vm.compressor_page_count;
    return tn_fact_minus(total, pages * (uint64_t)vm_kernel_page_size);
}

static uint32_t pressure_level(void)
{
    uint64_t level = sysctl_number("kern.memorystatus_vm_pressure_level");
    return level <= 4 ? (uint32_t)level : 0;
}

static uint64_t limit_left(int resource, uint64_t used)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return TERN_UNKNOWN;
    return tn_fact_minus(limit.rlim_cur, used);
}

static uint64_t resident_bytes(void)
{
    struct mach_task_basic_info info;
    mach_msg_type_number_t n = MACH_TASK_BASIC_INFO_COUNT;
    if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&info, &n) != KERN_SUCCESS)
        return 0;
    return info.resident_size;
}

void tn_memory_read_live(struct tern_sysinfo *out)
{
    struct xsw_usage swap;
    size_t n = sizeof swap;
    out->total_bytes = sysctl_number("hw.memsize");
    out->system_available_bytes = available(out->total_bytes);
    out->pressure_level = pressure_level();
    out->page_bytes = (uint64_t)vm_kernel_page_size;
    if (sysctlbyname("vm.swapusage", &swap, &n, NULL, 0) == 0) {
        out->swap_total_bytes = swap.xsu_total;
        out->swap_free_bytes = swap.xsu_avail;
    }
    /* macOS does not enforce RLIMIT_AS. */
    out->rlimit_data_left_bytes = limit_left(RLIMIT_DATA, resident_bytes());
}

void tn_memory_sample_live(struct tern_monitor_sample *out)
{
    out->available_bytes = available(sysctl_number("hw.memsize"));
    out->pressure_level = pressure_level();
}

#else
typedef int tn_mem_macos_is_empty; /* C requires at least one declaration */
#endif
