/* A stand-in for libnvidia-ml.so.1. Every value, error and delay comes from the plan file named by
 * STEPSCOPE_FAKE_NVML_PLAN, which is looked at on every call; only once when STEPSCOPE_FAKE_NVML_STATIC
 * is set, for benchmarks. Keys: see the table below and nvml.py. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_GPUS = 16, MAX_RULES = 128, TEXT = 96, MAX_SYMBOLS = 64, MIB = 1 << 20 };
enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, INSUFFICIENT_SIZE = 7, VERSION_MISMATCH = 25 };

typedef unsigned long long u64;

enum number { GPUS, UTIL, MEM_UTIL, POWER, ENERGY, TEMP, CLOCK_SM, CLOCK_MEM, THROTTLE, PCIE_RX, PCIE_TX, MEM_TOTAL,
              MEM_USED, MEM_RESERVED, PROCS, GRAPHICS_PROCS, PROC_PID, PROC_MEM, PROC_STRIDE, PCIE_BLOCK, POWER_LIMIT,
              MAX_CLOCK_SM, MAX_CLOCK_MEM, PCIE_GEN, PCIE_WIDTH, CC_MAJOR, CC_MINOR, CUDA, LOST_INIT, GPM, GPM_SM,
              GPM_OCCUPANCY, GPM_TENSOR, GPM_DRAM, NUMBERS };
static const struct { const char *key; u64 value; } numbers[NUMBERS] = {
    [GPUS] = {"gpus", 2}, [UTIL] = {"util", 0}, [MEM_UTIL] = {"mem_util", 0}, [POWER] = {"power_mw", 100000},
    [ENERGY] = {"energy_mj", 1000000}, [TEMP] = {"temp_c", 40}, [CLOCK_SM] = {"clock_sm", 1500},
    [CLOCK_MEM] = {"clock_mem", 2600}, [THROTTLE] = {"throttle", 0}, [PCIE_RX] = {"pcie_rx_kb", 1000},
    [PCIE_TX] = {"pcie_tx_kb", 500},
    [MEM_TOTAL] = {"mem_total", 81920ull * MIB}, [MEM_USED] = {"mem_used", 1024ull * MIB},
    [MEM_RESERVED] = {"mem_reserved", 300ull * MIB},
    [PROCS] = {"procs", 0}, [GRAPHICS_PROCS] = {"graphics_procs", 0},
    [PROC_PID] = {"proc_pid", 1000}, [PROC_MEM] = {"proc_mem", 512ull * MIB}, [PROC_STRIDE] = {"proc_stride", 24},
    [PCIE_BLOCK] = {"pcie_block_ms", 0}, [POWER_LIMIT] = {"power_limit_mw", 700000},
    [MAX_CLOCK_SM] = {"max_clock_sm", 1980}, [MAX_CLOCK_MEM] = {"max_clock_mem", 2619},
    [PCIE_GEN] = {"pcie_gen", 5}, [PCIE_WIDTH] = {"pcie_width", 16},
    [CC_MAJOR] = {"cc_major", 9}, [CC_MINOR] = {"cc_minor", 0}, [CUDA] = {"cuda", 13000},
    [GPM] = {"gpm", 1}, [GPM_SM] = {"gpm_sm", 0}, [GPM_OCCUPANCY] = {"gpm_occupancy", 0},
    [GPM_TENSOR] = {"gpm_tensor", 0}, [GPM_DRAM] = {"gpm_dram", 0},
    [LOST_INIT] = {"lost_init", 0}, /* raising it un-initialises the library once */
};

struct rule { char symbol[TEXT]; int device; unsigned from; int code; unsigned delay_ms; };
static struct plan {
    u64 number[MAX_GPUS][NUMBERS];
    char name[MAX_GPUS][TEXT], uuid[MAX_GPUS][TEXT], driver[TEXT];
    struct rule rules[MAX_RULES];
    int count;
} plan, next;
static struct { const char *symbol; unsigned all, of[MAX_GPUS]; } calls[MAX_SYMBOLS];
static struct stat seen;
static int ready = 0;
static u64 lost_init = 0;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what, const char *line) {
    fprintf(stderr, "stand-in NVML: %s: %s\n", what, line);
    abort();
}

static void set_text(char (*field)[TEXT], int device, const char *value) {
    char out[TEXT] = "";
    size_t n = 0;
    for (; *value && n < TEXT - 1; n++) {
        unsigned byte;
        if (value[0] == '\\' && value[1] == 'x' && sscanf(value + 2, "%2x", &byte) == 1) {
            out[n] = (char)byte;
            value += 4;
        } else {
            out[n] = *value++;
        }
    }
    for (int i = 0; i < MAX_GPUS; i++)
        if (device < 0 || device == i) memcpy(field[i], out, TEXT);
}

static void add_rule(const char *symbol, int device, unsigned from, int code, unsigned delay_ms) {
    if (next.count == MAX_RULES) fail("too many rules", symbol);
    struct rule *rule = &next.rules[next.count++];
    snprintf(rule->symbol, TEXT, "%s", symbol);
    rule->device = device;
    rule->from = from;
    rule->code = code;
    rule->delay_ms = delay_ms;
}

/* KEY VALUE, KEY:INDEX VALUE, ret[@K][:INDEX] SYMBOL CODE, delay_ms[:INDEX] SYMBOL MS, ret_all[:INDEX] CODE */
static void parse(char *line) {
    char key[TEXT], symbol[TEXT];
    int used = 0, device = -1;
    long long code;
    unsigned from = 1;
    if (sscanf(line, " %95s %n", key, &used) != 1 || key[0] == '#') return;
    const char *value = line + used;
    char *colon = strchr(key, ':'), *at = strchr(key, '@');
    if (colon) { device = atoi(colon + 1); *colon = 0; }
    if (at) { from = (unsigned)atoi(at + 1); *at = 0; }
    if (device >= MAX_GPUS) fail("no such device", line);
    if (!strcmp(key, "ret") && sscanf(value, "%95s %lli", symbol, &code) == 2) {
        add_rule(symbol, device, from, (int)code, 0);
    } else if (!strcmp(key, "delay_ms") && sscanf(value, "%95s %lli", symbol, &code) == 2) {
        add_rule(symbol, device, from, 0, (unsigned)code);
    } else if (!strcmp(key, "ret_all") && sscanf(value, "%lli", &code) == 1) {
        add_rule("*", device, from, (int)code, 0);
    } else if (!strcmp(key, "name")) {
        set_text(next.name, device, value);
    } else if (!strcmp(key, "uuid")) {
        set_text(next.uuid, device, value);
    } else if (!strcmp(key, "driver")) {
        snprintf(next.driver, TEXT, "%s", value);
    } else {
        char *end;
        u64 number = strtoull(value, &end, 0);
        int k = 0;
        while (k < NUMBERS && strcmp(key, numbers[k].key)) k++;
        if (k == NUMBERS || end == value) fail("unknown line in the plan", line);
        for (int i = 0; i < MAX_GPUS; i++)
            if (device < 0 || device == i) next.number[i][k] = number;
    }
}

static void look_at_plan(void) {
    const char *path = getenv("STEPSCOPE_FAKE_NVML_PLAN");
    struct stat now;
    static int loaded = 0;
    if (loaded && getenv("STEPSCOPE_FAKE_NVML_STATIC")) return;
    if (!path || stat(path, &now)) memset(&now, 0, sizeof now);
    if (loaded && now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
        now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec) return;
    loaded = 1;
    seen = now;
    memset(&next, 0, sizeof next);
    snprintf(next.driver, TEXT, "580.00.00");
    for (int i = 0; i < MAX_GPUS; i++) {
        for (int k = 0; k < NUMBERS; k++) next.number[i][k] = numbers[k].value;
        snprintf(next.name[i], TEXT, "Stand-in GPU");
        snprintf(next.uuid[i], TEXT, "GPU-00000000-0000-0000-0000-%012d", i);
    }
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        parse(line);
    }
    if (file) fclose(file);
    if (next.number[0][GPUS] > MAX_GPUS) fail("too many devices", "gpus");
    if (next.number[0][LOST_INIT] > lost_init) ready = 0;
    lost_init = next.number[0][LOST_INIT];
    plan = next; /* as a whole: another thread may be reading values */
}

/* What every call does first: look at the plan, count, wait, and find the planned error. */
static int enter(const char *symbol, int device) {
    unsigned delay = 0;
    int code = SUCCESS, k = 0;
    pthread_mutex_lock(&lock);
    look_at_plan();
    while (k < MAX_SYMBOLS && calls[k].symbol && calls[k].symbol != symbol) k++;
    if (k == MAX_SYMBOLS) fail("too many symbols", symbol);
    calls[k].symbol = symbol;
    calls[k].all++;
    if (device >= 0) calls[k].of[device]++;
    if (!strcmp(symbol, "nvmlInitWithFlags")) ready = 1;
    else if (!ready) code = UNINITIALIZED;
    for (int i = 0; i < plan.count; i++) {
        const struct rule *rule = &plan.rules[i];
        if (rule->device >= 0 && rule->device != device) continue;
        if (strcmp(rule->symbol, "*") && strcmp(rule->symbol, symbol)) continue;
        if ((rule->device >= 0 ? calls[k].of[device] : calls[k].all) < rule->from) continue;
        if (rule->delay_ms) delay = rule->delay_ms;
        else if (code != UNINITIALIZED) code = rule->code;
    }
    if (device >= 0 && !strcmp(symbol, "nvmlDeviceGetPcieThroughput"))
        delay += (unsigned)plan.number[device][PCIE_BLOCK];
    pthread_mutex_unlock(&lock);
    if (delay) usleep(delay * 1000);
    return code;
}

/* Handles are the index + 1, so that none is null. */
#define DEVICE(handle) ((int)(size_t)(handle) - 1)
#define NUMBER(k) plan.number[d][k]
#define GETTER(fn, type, k) \
    int fn(void *handle, type *out) { \
        int d = DEVICE(handle); \
        int code = enter(#fn, d); \
        if (!code) *out = (type)NUMBER(k); \
        return code; \
    }

int nvmlInitWithFlags(unsigned flags) { (void)flags; return enter("nvmlInitWithFlags", -1); }
int nvmlInit_v2(void) { return enter("nvmlInitWithFlags", -1); }
int nvmlShutdown(void) { int code = enter("nvmlShutdown", -1); ready = 0; return code; }

const char *nvmlErrorString(int code) {
    switch (code) {
        case 0: return "Success";
        case 1: return "Uninitialized";
        case 3: return "Not Supported";
        case 4: return "Insufficient Permissions";
        case 9: return "Driver Not Loaded";
        case 13: return "Function Not Found";
        case 15: return "GPU is lost";
        case 18: return "Driver/library version mismatch";
        default: return "Unknown Error";
    }
}

static int text(const char *symbol, int device, char *out, unsigned size, const char *value) {
    int code = enter(symbol, device);
    if (!code) snprintf(out, size, "%s", value);
    return code;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    return text("nvmlSystemGetDriverVersion", -1, out, size, plan.driver);
}
int nvmlSystemGetNVMLVersion(char *out, unsigned size) {
    return text("nvmlSystemGetNVMLVersion", -1, out, size, "13.580.00");
}
int nvmlSystemGetCudaDriverVersion(int *out) {
    int code = enter("nvmlSystemGetCudaDriverVersion", -1);
    if (!code) *out = (int)plan.number[0][CUDA];
    return code;
}
int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    int code = enter("nvmlSystemGetCudaDriverVersion_v2", -1);
    if (!code) *out = (int)plan.number[0][CUDA];
    return code;
}
int nvmlDeviceGetCount_v2(unsigned *out) {
    int code = enter("nvmlDeviceGetCount_v2", -1);
    if (!code) *out = (unsigned)plan.number[0][GPUS];
    return code;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
    if (index >= MAX_GPUS) return INVALID;
    int code = enter("nvmlDeviceGetHandleByIndex_v2", (int)index);
    if (!code && index >= plan.number[0][GPUS]) return INVALID;
    if (!code) *out = (void *)(size_t)(index + 1);
    return code;
}
int nvmlDeviceGetName(void *handle, char *out, unsigned size) {
    return text("nvmlDeviceGetName", DEVICE(handle), out, size, plan.name[DEVICE(handle)]);
}
int nvmlDeviceGetUUID(void *handle, char *out, unsigned size) {
    return text("nvmlDeviceGetUUID", DEVICE(handle), out, size, plan.uuid[DEVICE(handle)]);
}

GETTER(nvmlDeviceGetPowerUsage, unsigned, POWER)
GETTER(nvmlDeviceGetTotalEnergyConsumption, u64, ENERGY)
GETTER(nvmlDeviceGetCurrentClocksEventReasons, u64, THROTTLE)
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, THROTTLE)
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned, POWER_LIMIT)
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned, POWER_LIMIT)
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, PCIE_GEN)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, PCIE_GEN)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, PCIE_WIDTH)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, PCIE_WIDTH)

int nvmlDeviceGetUtilizationRates(void *handle, unsigned *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetUtilizationRates", d);
    if (!code) { out[0] = (unsigned)NUMBER(UTIL); out[1] = (unsigned)NUMBER(MEM_UTIL); }
    return code;
}
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetTemperature", d);
    (void)sensor;
    if (!code) *out = (unsigned)NUMBER(TEMP);
    return code;
}
int nvmlDeviceGetTemperatureV(void *handle, int *out) { /* version, sensor, temperature */
    int d = DEVICE(handle), code = enter("nvmlDeviceGetTemperatureV", d);
    if (!code) out[2] = (int)NUMBER(TEMP);
    return code;
}
static int clock_of(const char *symbol, void *handle, int type, unsigned *out, int sm, int mem) {
    int d = DEVICE(handle), code = enter(symbol, d);
    if (!code && type != 1 && type != 2) return INVALID;
    if (!code) *out = (unsigned)NUMBER(type == 1 ? sm : mem);
    return code;
}
int nvmlDeviceGetClockInfo(void *handle, int type, unsigned *out) {
    return clock_of("nvmlDeviceGetClockInfo", handle, type, out, CLOCK_SM, CLOCK_MEM);
}
int nvmlDeviceGetMaxClockInfo(void *handle, int type, unsigned *out) {
    return clock_of("nvmlDeviceGetMaxClockInfo", handle, type, out, MAX_CLOCK_SM, MAX_CLOCK_MEM);
}

int nvmlDeviceGetPcieThroughput(void *handle, int counter, unsigned *out) { /* 0: sent, 1: received */
    int d = DEVICE(handle), code = enter("nvmlDeviceGetPcieThroughput", d);
    if (!code) *out = (unsigned)NUMBER(counter == 1 ? PCIE_RX : PCIE_TX);
    return code;
}
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetCudaComputeCapability", d);
    if (!code) { *major = (int)NUMBER(CC_MAJOR); *minor = (int)NUMBER(CC_MINOR); }
    return code;
}

struct memory_v1 { u64 total, free, used; };
struct memory_v2 { unsigned version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo(void *handle, struct memory_v1 *out) { /* counts what the driver reserves as used */
    int d = DEVICE(handle), code = enter("nvmlDeviceGetMemoryInfo", d);
    if (code) return code;
    out->total = NUMBER(MEM_TOTAL);
    out->used = NUMBER(MEM_USED) + NUMBER(MEM_RESERVED);
    out->free = out->total > out->used ? out->total - out->used : 0;
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetMemoryInfo_v2", d);
    if (code) return code;
    if (out->version != (sizeof *out | 2u << 24)) return VERSION_MISMATCH;
    out->total = NUMBER(MEM_TOTAL);
    out->reserved = NUMBER(MEM_RESERVED);
    out->used = NUMBER(MEM_USED);
    out->free = out->total > out->used + out->reserved ? out->total - out->used - out->reserved : 0;
    return SUCCESS;
}

struct process { unsigned pid; u64 memory; unsigned instance, compute_instance; };
static int processes(const char *symbol, void *handle, unsigned *count, char *out, int of) {
    int d = DEVICE(handle), code = enter(symbol, d);
    if (code) return code;
    unsigned n = (unsigned)NUMBER(of), room = *count;
    *count = n;
    if (n == 0) return SUCCESS;
    if (!out || room < n) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) {
        struct process record = {(unsigned)NUMBER(PROC_PID) + i, NUMBER(PROC_MEM), 0xffffffffu, 0xffffffffu};
        size_t size = NUMBER(PROC_STRIDE);
        memcpy(out + i * size, &record, size < sizeof record ? size : sizeof record);
    }
    return SUCCESS;
}
#define PROCESS_LIST(fn, of) \
    int fn(void *handle, unsigned *count, void *out) { return processes(#fn, handle, count, out, of); }
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, PROCS)
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v2, PROCS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS_PROCS)
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS_PROCS)

/* GPM. A sample knows its device; values are those of the plan when they are asked for. */
struct gpm_support { unsigned version, supported; };
struct gpm_sample { int device; };
struct gpm_metric { unsigned id; int code; double value; const char *names[3]; };
struct gpm_get { unsigned version, count; struct gpm_sample *first, *second; struct gpm_metric metrics[]; };
static int samples = 0;

int nvmlGpmQueryDeviceSupport(void *handle, struct gpm_support *out) {
    int d = DEVICE(handle), code = enter("nvmlGpmQueryDeviceSupport", d);
    if (!code && out->version != 1) return VERSION_MISMATCH;
    if (!code) out->supported = (unsigned)NUMBER(GPM);
    return code;
}
int nvmlGpmSampleAlloc(struct gpm_sample **out) {
    int code = enter("nvmlGpmSampleAlloc", -1);
    if (code) return code;
    if (++samples > 2 * MAX_GPUS) fail("samples are not freed", "GPM");
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}
int nvmlGpmSampleFree(struct gpm_sample *sample) {
    int code = enter("nvmlGpmSampleFree", -1);
    if (!code) { samples--; free(sample); }
    return code;
}
int nvmlGpmSampleGet(void *handle, struct gpm_sample *sample) {
    int d = DEVICE(handle), code = enter("nvmlGpmSampleGet", d);
    if (!code) sample->device = d;
    return code;
}
int nvmlGpmMetricsGet(struct gpm_get *get) {
    int d = get->first->device, code = enter("nvmlGpmMetricsGet", d);
    if (!code && (get->version != 1 || get->second->device != d)) return INVALID;
    for (unsigned i = 0; !code && i < get->count; i++) {
        struct gpm_metric *metric = &get->metrics[i];
        int key = metric->id == 2 ? GPM_SM : metric->id == 3 ? GPM_OCCUPANCY : metric->id == 5 ? GPM_TENSOR
                  : metric->id == 10 ? GPM_DRAM : NUMBERS;
        metric->code = key == NUMBERS ? 3 : SUCCESS;
        if (key != NUMBERS) metric->value = (double)NUMBER(key) / 10;
    }
    return code;
}
