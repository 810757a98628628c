// Bytes and where they live: storage behind a caching allocator.
//
// Fresh pages cost more than most arithmetic, so freed blocks are kept and handed out again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tiny_compile {

enum class DeviceKind : uint8_t { Cpu, Cuda };

struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  int index = 0;
  std::string str() const;  // "cpu", "cuda:0"
  bool operator==(const Device&) const = default;
};

inline constexpr Device cpu{DeviceKind::Cpu, 0};
inline constexpr Device cuda{DeviceKind::Cuda, 0};

// An owned block of memory; returns to its allocator when destroyed. 64-byte aligned on the CPU;
// memory of other devices is a class of its own (CudaStorage).
class Storage {
 public:
  Storage(std::byte* data, size_t bytes, Device device)
      : data_(data), bytes_(bytes), device_(device) {}
  virtual ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  // Bytes first .. first + bytes - 1, to the host, once the work that makes them is done. Throws
  // tc::Error where that work failed.
  virtual void read(size_t first, size_t bytes, std::byte* to) const = 0;

 private:
  std::byte* data_;
  size_t bytes_;
  Device device_;
};

// Uninitialised CPU memory (may be 0 bytes). Throws tc::Error naming the size when
// there is none.
std::shared_ptr<Storage> allocate_cpu(size_t bytes);

// Bytes the CPU allocator holds in free blocks; release_cached_memory gives them back.
size_t cached_bytes();
void release_cached_memory();

}  // namespace tiny_compile
