"""A plan of the stand-in library, and what must arrive of it on the first device."""

MIB = 1 << 20

PLAN = (
    "util 37",
    "util:1 91",
    "mem_util 12",
    "power_mw 123456",
    "power_mw:1 654321",
    "energy_mj 5000500",
    "temp_c 61",
    "clock_sm 1755",
    "clock_mem 2619",
    "throttle 0x24",
    "throttle:1 0",
    "pcie_rx_kb 4321",
    "pcie_tx_kb 1234",
)
PLANNED = {
    "gpu.util": 0.37,
    "gpu.mem_util": 0.12,
    "gpu.mem_used": 1024 * MIB,
    "gpu.mem_reserved": 300 * MIB,
    "gpu.mem_free": 80596 * MIB,
    "gpu.power": 123.456,
    "gpu.energy": 5000.5,
    "gpu.temperature": 61,
    "gpu.clock_sm": 1755,
    "gpu.clock_mem": 2619,
    "gpu.throttle": 0x24,
}

# What a call of a device at every tick is for.
FAST = {
    "nvmlDeviceGetUtilizationRates": {"gpu.util", "gpu.mem_util"},
    "nvmlDeviceGetMemoryInfo_v2": {"gpu.mem_used", "gpu.mem_free", "gpu.mem_reserved"},
    "nvmlDeviceGetPowerUsage": {"gpu.power"},
    "nvmlDeviceGetTotalEnergyConsumption": {"gpu.energy"},
    "nvmlDeviceGetTemperature": {"gpu.temperature"},
    "nvmlDeviceGetClockInfo": {"gpu.clock_sm", "gpu.clock_mem"},
    "nvmlDeviceGetCurrentClocksEventReasons": {"gpu.throttle"},
}
