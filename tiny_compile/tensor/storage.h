// Bytes and where they live: storage behind a caching allocator.
//
// Fresh pages cost more than most arithmetic, so freed blocks are kept and handed out again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// An owned block of memory, 64-byte aligned on the CPU; returns to the allocator when
// destroyed. Memory of other devices comes with its own `release` and `read`, which copies
// bytes to the host once the work that makes them is done.
class Storage {
 public:
  using Release = void (*)(std::byte* data, size_t bytes);
  using Read = void (*)(const Storage& storage, size_t first, size_t bytes, std::byte* to);

  Storage(std::byte* data, size_t bytes, Device device, Release release, Read read = nullptr);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  // Bytes first .. first + bytes - 1, to the host. Throws what the check throws: where work on
  // another device can fail, it is told when its result is read.
  void read(size_t first, size_t bytes, std::byte* to) const;
  void set_check(std::function<void()> check) { check_ = std::move(check); }

 private:
  std::byte* data_;
  size_t bytes_;
  Device device_;
  Release release_;
  Read read_;
  std::function<void()> check_;
};

// Uninitialised CPU memory (may be 0 bytes). Throws tc::Error naming the size when
// there is none.
std::shared_ptr<Storage> allocate_cpu(size_t bytes);

// Bytes the CPU allocator holds in free blocks; release_cached_memory gives them back.
size_t cached_bytes();
void release_cached_memory();

}  // namespace tiny_compile
