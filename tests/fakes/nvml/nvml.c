/* A stand-in for libnvidia-ml.so.1. Every value, error and delay comes from the plan file named by
 * STEPSCOPE_FAKE_NVML_PLAN, which is looked at on every call; only once when STEPSCOPE_FAKE_NVML_STATIC
 * is set, for benchmarks. Keys: see the table below and nvml.py. */

#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_GPUS = 16, MAX_RULES = 512, TEXT = 96, MAX_SYMBOLS = 96, MIB = 1 << 20 };
enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TIMEOUT = 10, INSUFFICIENT_SIZE = 7, VERSION_MISMATCH = 25 };

typedef unsigned long long u64;

enum number { GPUS, UTIL, MEM_UTIL, POWER, ENERGY, TEMP, CLOCK_SM, CLOCK_MEM, THROTTLE, PCIE_RX, PCIE_TX, MEM_TOTAL,
              MEM_USED, MEM_RESERVED, PROCS, GRAPHICS_PROCS, PROC_PID, PROC_MEM, PROC_STRIDE, PCIE_BLOCK, POWER_LIMIT,
              MAX_CLOCK_SM, MAX_CLOCK_MEM, PCIE_GEN, PCIE_WIDTH, CC_MAJOR, CC_MINOR, CUDA, LOST_INIT, GPM, GPM_SM,
              GPM_OCCUPANCY, GPM_TENSOR, GPM_DRAM, GPM_HMMA, GPM_FP64, GPM_FP32, GPM_FP16, GPM_RATES, GPM_PCIE_TX,
              GPM_PCIE_RX, GPM_NVLINK_RX, GPM_NVLINK_TX, PCIE_GEN_NOW, PCIE_WIDTH_NOW, PCIE_GEN_CARD, POWER_DEFAULT,
              APP_CLOCK, ECC_CORRECTED, ECC_UNCORRECTED, REMAP_CORRECTED, REMAP_UNCORRECTED, REMAP_PENDING,
              REMAP_FAILED, XID, XIDS, NVLINKS, NVLINKS_UP, BUFFER_UTIL, BUFFER_POWER, BUFFER_COUNT, BUFFER_STAMP,
              BUFFER_PERIOD, CARD, GPM_SAMPLES, MIG, SLICES, SLICE_TOTAL, SLICE_USED, PROC_USE, PROC_USE_COUNT,
              PROC_USE_PID, PROC_USE_STAMP, PROC_USE_NONE, NUMBERS };
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
    [GPM_HMMA] = {"gpm_hmma", 0}, [GPM_FP64] = {"gpm_fp64", 0}, [GPM_FP32] = {"gpm_fp32", 0},
    [GPM_FP16] = {"gpm_fp16", 0}, [GPM_RATES] = {"gpm_rates", 0}, [GPM_PCIE_TX] = {"gpm_pcie_tx", 0},
    [GPM_PCIE_RX] = {"gpm_pcie_rx", 0}, [GPM_NVLINK_RX] = {"gpm_nvlink_rx", 0},
    [GPM_NVLINK_TX] = {"gpm_nvlink_tx", 0},
    [PCIE_GEN_NOW] = {"pcie_gen_now", 0}, [PCIE_WIDTH_NOW] = {"pcie_width_now", 0}, /* 0: all that is possible */
    [PCIE_GEN_CARD] = {"pcie_gen_card", 0}, [POWER_DEFAULT] = {"power_default_mw", 700000},
    [APP_CLOCK] = {"app_clock_sm", 1980},
    [ECC_CORRECTED] = {"ecc_corrected", 0}, [ECC_UNCORRECTED] = {"ecc_uncorrected", 0},
    [REMAP_CORRECTED] = {"remap_corrected", 0}, [REMAP_UNCORRECTED] = {"remap_uncorrected", 0},
    [REMAP_PENDING] = {"remap_pending", 0}, [REMAP_FAILED] = {"remap_failed", 0},
    [XID] = {"xid", 79}, [XIDS] = {"xids", 0}, /* so many have happened */
    [NVLINKS] = {"nvlinks", 4}, [NVLINKS_UP] = {"nvlinks_up", 4},
    [BUFFER_UTIL] = {"buffer_util", 50}, [BUFFER_POWER] = {"buffer_power_mw", 100000},
    [BUFFER_COUNT] = {"buffer_count", 0}, [BUFFER_STAMP] = {"buffer_stamp_us", 0}, /* of the newest; 0: now */
    [BUFFER_PERIOD] = {"buffer_period_us", 20000},
    [CARD] = {"card", 0}, /* which card has this index; by default the one of that number */
    [GPM_SAMPLES] = {"gpm_samples", 4 * MAX_GPUS}, /* lent at a time */
    [MIG] = {"mig", 0}, [SLICES] = {"slices", 2}, [SLICE_TOTAL] = {"slice_total", 10240ull * MIB},
    [SLICE_USED] = {"slice_used", 100ull * MIB},
    [PROC_USE] = {"proc_use", 0}, [PROC_USE_COUNT] = {"proc_use_count", 0}, /* of processes that did something */
    [PROC_USE_PID] = {"proc_use_pid", 1000}, [PROC_USE_STAMP] = {"proc_use_stamp_us", 0}, /* 0: just now */
    [PROC_USE_NONE] = {"proc_use_none", NOT_FOUND}, /* what is answered where no process did anything */
    [LOST_INIT] = {"lost_init", 0}, /* raising it un-initialises the library once */
};

/* What a call that succeeds answers instead of the truth. */
enum junk { TRUTH, ONES, ZEROS, HUGE, NEGATIVE, NOT_A_NUMBER, INFINITE, PARTIAL, LONG, SHORT, WRONG_TYPE, NO_TEXT, JUNKS };
static const char *junks[JUNKS] = {"truth", "ones", "zeros", "huge", "negative", "nan", "inf", "partial", "long",
                                   "short", "wrong_type", "no_text"};

struct rule { char symbol[TEXT]; int device; unsigned from; int code; unsigned delay_ms; int hang, crash; enum junk junk; };
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

static struct rule *add_rule(const char *symbol, int device, unsigned from, int code, unsigned delay_ms) {
    if (next.count == MAX_RULES) fail("too many rules", symbol);
    struct rule *rule = &next.rules[next.count++];
    snprintf(rule->symbol, TEXT, "%s", symbol);
    rule->device = device;
    rule->from = from;
    rule->code = code;
    rule->delay_ms = delay_ms;
    return rule;
}

static enum junk junk_of(const char *word, const char *line) {
    int k = 0;
    while (k < JUNKS && strcmp(word, junks[k])) k++;
    if (k == JUNKS) fail("unknown junk", line);
    return (enum junk)k;
}

/* KEY VALUE, KEY:INDEX VALUE, ret[@K][:INDEX] SYMBOL CODE, delay_ms[:INDEX] SYMBOL MS, ret_all[:INDEX] CODE,
 * hang[:INDEX] SYMBOL, junk[:INDEX] SYMBOL WORD, crash[@K][:INDEX] SYMBOL SIGNAL */
static void parse(char *line) {
    char key[TEXT], symbol[TEXT], word[TEXT];
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
    } else if (!strcmp(key, "hang") && sscanf(value, "%95s", symbol) == 1) {
        add_rule(symbol, device, from, 0, 0)->hang = 1;
    } else if (!strcmp(key, "crash") && sscanf(value, "%95s %lli", symbol, &code) == 2) {
        add_rule(symbol, device, from, 0, 0)->crash = (int)code;
    } else if (!strcmp(key, "junk") && sscanf(value, "%95s %95s", symbol, word) == 2) {
        add_rule(symbol, device, from, 0, 0)->junk = junk_of(word, line);
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
        for (int k = 0; k < NUMBERS; k++) next.number[i][k] = k == CARD ? (u64)i : numbers[k].value;
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

/* Calls that hang now: until the plan says so no more. Tests need not wait for a call to be late. */
enum { MAX_HANGING = 64 };
struct hanging { u64 serial, thread; };
static struct hanging hanging[MAX_HANGING];
static u64 hangs = 0;

int stand_in_hanging(struct hanging *out, int room) {
    int n = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_HANGING; i++)
        if (hanging[i].serial && n < room) out[n++] = hanging[i];
    pthread_mutex_unlock(&lock);
    return n;
}

static const struct rule *rule_of(const char *symbol, int device, int k, int i) {
    const struct rule *rule = &plan.rules[i];
    if (rule->device >= 0 && rule->device != device) return NULL;
    if (strcmp(rule->symbol, "*") && strcmp(rule->symbol, symbol)) return NULL;
    return (rule->device >= 0 ? calls[k].of[device] : calls[k].all) < rule->from ? NULL : rule;
}

static int hangs_now(const char *symbol, int device, int k) {
    for (int i = 0; i < plan.count; i++) {
        const struct rule *rule = rule_of(symbol, device, k, i);
        if (rule && rule->crash) raise(rule->crash);
        if (rule && rule->hang) return 1;
    }
    return 0;
}

/* Called and left with the lock. */
static void hang(const char *symbol, int device, int k) {
    int at = 0;
    while (at < MAX_HANGING && hanging[at].serial) at++;
    if (at == MAX_HANGING) fail("too many calls hang", symbol);
    hanging[at] = (struct hanging){++hangs, (u64)pthread_self()};
    do {
        pthread_mutex_unlock(&lock);
        usleep(1000);
        pthread_mutex_lock(&lock);
        look_at_plan();
    } while (hangs_now(symbol, device, k));
    hanging[at].serial = 0;
}

static __thread enum junk junk; /* of the call under way */

/* For benchmarks: lines of a plan that take the place of earlier ones of the same key, and of all rules. */
void stand_in_lines(const char *text) {
    char line[512];
    pthread_mutex_lock(&lock);
    look_at_plan();
    next.count = 0;
    while (*text) {
        size_t size = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)size, text);
        parse(line);
        text += size + (text[size] == '\n');
    }
    plan = next;
    pthread_mutex_unlock(&lock);
}

/* What every call does first: look at the plan, count, wait, and find the planned error. */
static int enter(const char *symbol, int device) {
    unsigned delay = 0;
    int code = SUCCESS, k = 0;
    pthread_mutex_lock(&lock);
    look_at_plan();
    while (k < MAX_SYMBOLS && calls[k].symbol && strcmp(calls[k].symbol, symbol)) k++;
    if (k == MAX_SYMBOLS) fail("too many symbols", symbol);
    calls[k].symbol = symbol;
    calls[k].all++;
    if (device >= 0) calls[k].of[device]++;
    if (hangs_now(symbol, device, k)) hang(symbol, device, k);
    if (!strcmp(symbol, "nvmlInitWithFlags")) ready = 1;
    else if (!ready) code = UNINITIALIZED;
    junk = TRUTH;
    for (int i = 0; i < plan.count; i++) {
        const struct rule *rule = rule_of(symbol, device, k, i);
        if (!rule) continue;
        if (rule->junk) junk = rule->junk;
        else if (rule->delay_ms) delay = rule->delay_ms;
        else if (code != UNINITIALIZED && !rule->hang) code = rule->code;
    }
    if (device >= 0 && !strcmp(symbol, "nvmlDeviceGetPcieThroughput"))
        delay += (unsigned)plan.number[device][PCIE_BLOCK];
    pthread_mutex_unlock(&lock);
    if (delay) usleep(delay * 1000);
    return code;
}

/* What the call answered becomes what the plan has in its place. Bytes of an integer, the lowest first. */
static void spoil(void *out, size_t size) {
    unsigned char *byte = out;
    if (junk == ZEROS) memset(out, 0, size);
    if (junk != ONES && junk != HUGE && junk != NEGATIVE) return;
    memset(out, 0xff, size);
    if (junk == HUGE) byte[size - 1] = 0x7f;
    if (junk == NEGATIVE) byte[0] = 0xfb; /* -5 */
}
#define SPOIL(place) spoil(&(place), sizeof(place))
static void spoil_share(double *out) {
    static const double of[JUNKS] = {[HUGE] = 1e300, [NEGATIVE] = -5, [NOT_A_NUMBER] = NAN, [INFINITE] = INFINITY};
    if (of[junk] != 0) *out = of[junk];
    else if (junk == ONES || junk == ZEROS) spoil(out, sizeof *out);
}
static void spoil_text(char *out, unsigned size) {
    if (junk == ONES) memset(out, 0xff, size);
    if (junk == HUGE) memset(out, 'A', size); /* without an end */
    if (junk == ZEROS) memset(out, 0, size);
    if (junk == NO_TEXT) snprintf(out, size, "%s", "\xf8\x84 bad");
}

/* Handles are the index + 1, so that none is null; of MIG slices 1000 + 16 * the device's index + their own. */
#define SLICE(handle) ((size_t)(handle) >= 1000 ? (int)((size_t)(handle) - 1000) % 16 : -1)
#define DEVICE(handle) (SLICE(handle) < 0 ? (int)(size_t)(handle) - 1 : (int)((size_t)(handle) - 1000) / 16)
#define NUMBER(k) plan.number[d][k]
#define GETTER(fn, type, k) \
    int fn(void *handle, type *out) { \
        int d = DEVICE(handle); \
        int code = enter(#fn, d); \
        if (!code) { *out = (type)NUMBER(k); SPOIL(*out); } \
        return code; \
    }

int nvmlInitWithFlags(unsigned flags) { (void)flags; return enter("nvmlInitWithFlags", -1); }
int nvmlInit_v2(void) { return enter("nvmlInitWithFlags", -1); }

const char *nvmlErrorString(int code) {
    switch (code) {
        case 0: return "Success";
        case 1: return "Uninitialized";
        case 3: return "Not Supported";
        case 4: return "Insufficient Permissions";
        case 6: return "Not Found";
        case 9: return "Driver Not Loaded";
        case 10: return "Timeout";
        case 13: return "Function Not Found";
        case 15: return "GPU is lost";
        case 18: return "Driver/library version mismatch";
        default: return "Unknown Error";
    }
}

static int text(const char *symbol, int device, char *out, unsigned size, const char *value) {
    int code = enter(symbol, device);
    if (!code) { snprintf(out, size, "%s", value); spoil_text(out, size); }
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
    if (!code) { *out = (int)plan.number[0][CUDA]; SPOIL(*out); }
    return code;
}
int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    int code = enter("nvmlSystemGetCudaDriverVersion_v2", -1);
    if (!code) { *out = (int)plan.number[0][CUDA]; SPOIL(*out); }
    return code;
}
int nvmlDeviceGetCount_v2(unsigned *out) {
    int code = enter("nvmlDeviceGetCount_v2", -1);
    if (!code) { *out = (unsigned)plan.number[0][GPUS]; SPOIL(*out); }
    return code;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) {
    if (index >= MAX_GPUS) return INVALID;
    int code = enter("nvmlDeviceGetHandleByIndex_v2", (int)index);
    if (!code && index >= plan.number[0][GPUS]) return INVALID;
    if (!code) *out = (void *)(size_t)(plan.number[index][CARD] + 1);
    return code;
}
int nvmlDeviceGetName(void *handle, char *out, unsigned size) {
    return text("nvmlDeviceGetName", DEVICE(handle), out, size, plan.name[DEVICE(handle)]);
}
int nvmlDeviceGetUUID(void *handle, char *out, unsigned size) {
    if (SLICE(handle) >= 0) {
        char slice[TEXT];
        snprintf(slice, TEXT, "MIG-%d%d000000-0000-0000-0000-000000000000", DEVICE(handle), SLICE(handle));
        return text("nvmlDeviceGetUUID", DEVICE(handle), out, size, slice);
    }
    return text("nvmlDeviceGetUUID", DEVICE(handle), out, size, plan.uuid[DEVICE(handle)]);
}

GETTER(nvmlDeviceGetPowerUsage, unsigned, POWER)
GETTER(nvmlDeviceGetTotalEnergyConsumption, u64, ENERGY)
GETTER(nvmlDeviceGetCurrentClocksEventReasons, u64, THROTTLE)
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, u64, THROTTLE)
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned, POWER_LIMIT)
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned, POWER_LIMIT)
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, NUMBER(PCIE_GEN_NOW) ? PCIE_GEN_NOW : PCIE_GEN)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, PCIE_GEN)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, NUMBER(PCIE_WIDTH_NOW) ? PCIE_WIDTH_NOW : PCIE_WIDTH)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, PCIE_WIDTH)
GETTER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, NUMBER(PCIE_GEN_CARD) ? PCIE_GEN_CARD : PCIE_GEN)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, POWER_DEFAULT)

int nvmlDeviceGetUtilizationRates(void *handle, unsigned *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetUtilizationRates", d);
    if (!code && SLICE(handle) >= 0) return NOT_SUPPORTED;
    if (!code) { out[0] = (unsigned)NUMBER(UTIL); out[1] = (unsigned)NUMBER(MEM_UTIL); SPOIL(out[0]); SPOIL(out[1]); }
    return code;
}
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetTemperature", d);
    (void)sensor;
    if (!code) { *out = (unsigned)NUMBER(TEMP); SPOIL(*out); }
    return code;
}
int nvmlDeviceGetTemperatureV(void *handle, int *out) { /* version, sensor, temperature */
    int d = DEVICE(handle), code = enter("nvmlDeviceGetTemperatureV", d);
    if (!code) { out[2] = (int)NUMBER(TEMP); SPOIL(out[2]); }
    return code;
}
static int clock_of(const char *symbol, void *handle, int type, unsigned *out, int sm, int mem) {
    int d = DEVICE(handle), code = enter(symbol, d);
    if (!code && type != 1 && type != 2) return INVALID;
    if (!code) { *out = (unsigned)NUMBER(type == 1 ? sm : mem); SPOIL(*out); }
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
    if (!code) { *out = (unsigned)NUMBER(counter == 1 ? PCIE_RX : PCIE_TX); SPOIL(*out); }
    return code;
}
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetCudaComputeCapability", d);
    if (!code) { *major = (int)NUMBER(CC_MAJOR); *minor = (int)NUMBER(CC_MINOR); SPOIL(*major); SPOIL(*minor); }
    return code;
}

struct memory_v1 { u64 total, free, used; };
struct memory_v2 { unsigned version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo(void *handle, struct memory_v1 *out) { /* counts what the driver reserves as used */
    int d = DEVICE(handle), code = enter("nvmlDeviceGetMemoryInfo", d);
    if (code) return code;
    if (SLICE(handle) >= 0) {
        *out = (struct memory_v1){NUMBER(SLICE_TOTAL), NUMBER(SLICE_TOTAL) - NUMBER(SLICE_USED), NUMBER(SLICE_USED)};
        return SUCCESS;
    }
    out->total = NUMBER(MEM_TOTAL);
    out->used = NUMBER(MEM_USED) + NUMBER(MEM_RESERVED);
    out->free = out->total > out->used ? out->total - out->used : 0;
    SPOIL(*out);
    if (junk == PARTIAL) out->free = out->used = 0;
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetMemoryInfo_v2", d);
    if (code) return code;
    if (out->version != (sizeof *out | 2u << 24)) return VERSION_MISMATCH;
    if (SLICE(handle) >= 0) {
        *out = (struct memory_v2){out->version, NUMBER(SLICE_TOTAL), 0, NUMBER(SLICE_TOTAL) - NUMBER(SLICE_USED),
                                  NUMBER(SLICE_USED)};
        SPOIL(*out);
        return SUCCESS;
    }
    out->total = NUMBER(MEM_TOTAL);
    out->reserved = NUMBER(MEM_RESERVED);
    out->used = NUMBER(MEM_USED);
    out->free = out->total > out->used + out->reserved ? out->total - out->used - out->reserved : 0;
    SPOIL(*out);
    if (junk == PARTIAL) out->free = out->used = 0;
    return SUCCESS;
}

struct process { unsigned pid; u64 memory; unsigned instance, compute_instance; };
static int processes(const char *symbol, void *handle, unsigned *count, char *out, int of) {
    int d = DEVICE(handle), code = enter(symbol, d);
    if (code) return code;
    unsigned n = (unsigned)NUMBER(of), room = *count;
    if (junk == SHORT) n = 0;
    *count = n;
    if (n == 0) return SUCCESS;
    if (!out || room < n) return INSUFFICIENT_SIZE;
    if (junk == LONG) *count = 100000; /* more than there is room for */
    for (unsigned i = 0; i < n; i++) {
        struct process record = {(unsigned)NUMBER(PROC_PID) + i, NUMBER(PROC_MEM), 0xffffffffu, 0xffffffffu};
        SPOIL(record.pid);
        SPOIL(record.memory);
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

/* What each process did: samples newer than a stamp; a stamp that is planned is told whatever was asked. */
static u64 use_stamp(int d) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return NUMBER(PROC_USE_STAMP) ? NUMBER(PROC_USE_STAMP) : (u64)now.tv_sec * 1000000 + (u64)now.tv_nsec / 1000;
}
struct use { unsigned pid; u64 stamp; unsigned sm, mem, enc, dec; };
int nvmlDeviceGetProcessUtilization(void *handle, struct use *out, unsigned *count, u64 since) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetProcessUtilization", d);
    unsigned n = (unsigned)NUMBER(PROC_USE_COUNT), room = *count;
    (void)since;
    if (code) return code;
    if (!n) return (int)NUMBER(PROC_USE_NONE);
    *count = n;
    if (!out || room < n) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) {
        out[i] = (struct use){(unsigned)NUMBER(PROC_USE_PID) + i, use_stamp(d), (unsigned)NUMBER(PROC_USE), 0, 0, 0};
        SPOIL(out[i].sm);
    }
    return SUCCESS;
}
struct use_info { u64 stamp; unsigned pid, sm, mem, enc, dec, jpg, ofa; };
struct use_infos { unsigned version, count; u64 since; struct use_info *of; };
int nvmlDeviceGetProcessesUtilizationInfo(void *handle, struct use_infos *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetProcessesUtilizationInfo", d);
    unsigned n = (unsigned)NUMBER(PROC_USE_COUNT), room = out->count;
    if (code) return code;
    if (out->version != (sizeof *out | 1u << 24)) return VERSION_MISMATCH;
    if (!n) return (int)NUMBER(PROC_USE_NONE);
    out->count = n;
    if (!out->of || room < n) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) {
        out->of[i] = (struct use_info){use_stamp(d), (unsigned)NUMBER(PROC_USE_PID) + i, (unsigned)NUMBER(PROC_USE),
                                       0, 0, 0, 0, 0};
        SPOIL(out->of[i].sm);
    }
    return SUCCESS;
}

/* GPM. A sample knows its device; values are those of the plan when they are asked for. */
struct gpm_support { unsigned version, supported; };
struct gpm_sample { int device; };
struct gpm_metric { unsigned id; int code; double value; const char *names[3]; };
struct gpm_get { unsigned version, count; struct gpm_sample *first, *second; struct gpm_metric metrics[]; };
static int samples = 0;
static const struct { unsigned id; int key; } gpm_ids[] = { /* shares in per mille, rates in MiB/s */
    {2, GPM_SM}, {3, GPM_OCCUPANCY}, {5, GPM_TENSOR}, {7, GPM_HMMA}, {10, GPM_DRAM}, {11, GPM_FP64}, {12, GPM_FP32},
    {13, GPM_FP16}, {20, GPM_PCIE_TX}, {21, GPM_PCIE_RX}, {60, GPM_NVLINK_RX}, {61, GPM_NVLINK_TX},
};

int nvmlGpmQueryDeviceSupport(void *handle, struct gpm_support *out) {
    int d = DEVICE(handle), code = enter("nvmlGpmQueryDeviceSupport", d);
    if (!code && out->version != 1) return VERSION_MISMATCH;
    if (!code) { out->supported = (unsigned)NUMBER(GPM); SPOIL(out->supported); }
    return code;
}
int nvmlShutdown(void) {
    int code = enter("nvmlShutdown", -1);
    ready = samples = 0;
    return code;
}
int nvmlGpmSampleAlloc(struct gpm_sample **out) {
    int code = enter("nvmlGpmSampleAlloc", -1);
    if (code) return code;
    if (++samples > (int)plan.number[0][GPM_SAMPLES]) fail("samples are not freed", "GPM");
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}
int nvmlGpmSampleFree(struct gpm_sample *sample) {
    int code = enter("nvmlGpmSampleFree", -1);
    samples--; /* one that it refuses to take back is not the caller's fault */
    if (!code) free(sample);
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
        int key = NUMBERS;
        for (size_t k = 0; k < sizeof gpm_ids / sizeof *gpm_ids; k++)
            if (gpm_ids[k].id == metric->id && (metric->id < 20 || NUMBER(GPM_RATES))) key = gpm_ids[k].key;
        metric->code = key == NUMBERS ? 3 : SUCCESS;
        if (key != NUMBERS) metric->value = metric->id < 20 ? (double)NUMBER(key) / 10 : (double)NUMBER(key);
        spoil_share(&metric->value);
    }
    return code;
}

int nvmlGpmMigSampleGet(void *handle, unsigned instance, struct gpm_sample *sample) {
    int d = DEVICE(handle), code = enter("nvmlGpmMigSampleGet", d);
    if (!code && (instance < 7 || instance >= 7 + NUMBER(SLICES))) return INVALID;
    if (!code) sample->device = d;
    return code;
}

int nvmlDeviceGetApplicationsClock(void *handle, int type, unsigned *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetApplicationsClock", d);
    if (!code) { *out = (unsigned)NUMBER(type == 1 ? APP_CLOCK : CLOCK_MEM); SPOIL(*out); }
    return code;
}

/* Health: error counts since the driver was loaded, rows of memory that were replaced, XIDs. */
int nvmlDeviceGetTotalEccErrors(void *handle, int type, int counter, u64 *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetTotalEccErrors", d);
    if (!code && counter != 0) return INVALID;
    if (!code) { *out = NUMBER(type == 1 ? ECC_UNCORRECTED : ECC_CORRECTED); SPOIL(*out); }
    return code;
}
int nvmlDeviceGetRemappedRows(void *handle, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failed) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetRemappedRows", d);
    if (code) return code;
    *corrected = (unsigned)NUMBER(REMAP_CORRECTED);
    *uncorrected = (unsigned)NUMBER(REMAP_UNCORRECTED);
    *pending = (unsigned)NUMBER(REMAP_PENDING);
    *failed = (unsigned)NUMBER(REMAP_FAILED);
    SPOIL(*corrected);
    SPOIL(*uncorrected);
    SPOIL(*pending);
    SPOIL(*failed);
    return SUCCESS;
}
struct event_set { int device; u64 given; };
struct event { void *device; u64 type, data; unsigned instance, compute_instance; };
int nvmlEventSetCreate(struct event_set **out) {
    int code = enter("nvmlEventSetCreate", -1);
    if (!code) *out = calloc(1, sizeof **out);
    return code;
}
int nvmlDeviceRegisterEvents(void *handle, u64 types, struct event_set *set) {
    int d = DEVICE(handle), code = enter("nvmlDeviceRegisterEvents", d);
    if (!code && types != 8) return INVALID;
    if (!code) *set = (struct event_set){d, NUMBER(XIDS)};
    return code;
}
int nvmlEventSetWait_v2(struct event_set *set, struct event *out, unsigned timeout_ms) {
    int d = set->device, code = enter("nvmlEventSetWait_v2", d);
    (void)timeout_ms;
    if (code) return code;
    if (set->given >= NUMBER(XIDS) && (!junk || (junk > NEGATIVE && junk != WRONG_TYPE))) return TIMEOUT;
    set->given++;
    *out = (struct event){(void *)(size_t)(d + 1), junk == WRONG_TYPE ? 2 : 8, NUMBER(XID), 0xffffffffu, 0xffffffffu};
    SPOIL(out->data);
    return SUCCESS;
}
int nvmlEventSetFree(struct event_set *set) {
    int code = enter("nvmlEventSetFree", -1);
    if (!code) free(set);
    return code;
}

int nvmlDeviceGetNvLinkState(void *handle, unsigned link, unsigned *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetNvLinkState", d);
    if (!code && link >= NUMBER(NVLINKS)) return INVALID;
    if (!code) { *out = link < NUMBER(NVLINKS_UP); SPOIL(*out); }
    return code;
}
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char name[32]; };
int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetPciInfo_v3", d);
    if (!code) snprintf(out->name, sizeof out->name, "00000000:%02X:00.0", 0x10 + d);
    if (!code) spoil_text(out->name, sizeof out->name);
    return code;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *handle, unsigned link, struct pci *out) { /* all to the next device */
    int d = DEVICE(handle), code = enter("nvmlDeviceGetNvLinkRemotePciInfo_v2", d);
    (void)link;
    if (!code) snprintf(out->name, sizeof out->name, "00000000:%02X:00.0", 0x11 + d);
    if (!code) spoil_text(out->name, sizeof out->name);
    return code;
}

/* The driver's own buffers of samples: those that are newer than a stamp, the oldest first. */
struct sample { u64 stamp; union { double d; unsigned u; u64 l; } value; };
int nvmlDeviceGetSamples(void *handle, int type, u64 since, int *value_type, unsigned *count, struct sample *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetSamples", d);
    if (code) return code;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    u64 n = NUMBER(BUFFER_COUNT), newest = NUMBER(BUFFER_STAMP), filled = 0;
    if (!newest) newest = (u64)now.tv_sec * 1000000 + (u64)now.tv_nsec / 1000;
    *value_type = junk == WRONG_TYPE ? 6 : 1;
    if (!out) { *count = 120; return SUCCESS; }
    for (u64 i = n; i-- > 0 && filled < *count;) {
        u64 stamp = newest - i * NUMBER(BUFFER_PERIOD);
        if (stamp <= since) continue;
        out[filled].stamp = stamp;
        out[filled].value.u = (unsigned)NUMBER(type == 0 ? BUFFER_POWER : BUFFER_UTIL);
        SPOIL(out[filled].value.u);
        if (junk == PARTIAL) out[filled].stamp = 0;
        filled++;
    }
    *count = junk == LONG ? 100000 : junk == SHORT && filled ? 1 : (unsigned)filled;
    return filled ? SUCCESS : NOT_FOUND;
}

/* MIG: slices of a device that are handles of their own. */
int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetMigMode", d);
    if (!code) { *current = *pending = (unsigned)NUMBER(MIG); SPOIL(*current); }
    return code;
}
int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetMaxMigDeviceCount", d);
    if (!code) { *out = NUMBER(MIG) ? 7 : 0; SPOIL(*out); }
    return code;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetMigDeviceHandleByIndex", d);
    if (!code && index >= NUMBER(SLICES)) return NOT_FOUND;
    if (!code) *out = (void *)(size_t)(1000 + 16 * d + (int)index);
    return code;
}
int nvmlDeviceGetGpuInstanceId(void *handle, unsigned *out) {
    int code = enter("nvmlDeviceGetGpuInstanceId", DEVICE(handle));
    if (!code) { *out = 7 + (unsigned)SLICE(handle); SPOIL(*out); }
    return code;
}
int nvmlDeviceGetComputeInstanceId(void *handle, unsigned *out) {
    int code = enter("nvmlDeviceGetComputeInstanceId", DEVICE(handle));
    if (!code) *out = 0;
    return code;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *handle, void **out) {
    int d = DEVICE(handle), code = enter("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", d);
    if (!code) *out = (void *)(size_t)(d + 1);
    return code;
}
