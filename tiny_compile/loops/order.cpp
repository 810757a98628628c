// Which launch should come next? Of those whose operands are there, the one that leaves the fewest
// bytes alive: a long value is then read, and gone, before another one is made.
//
//   launch exp_1 (makes t1, 4 MB)            exp_1
//   launch exp_2 (makes t2, 4 MB)      =>    sum_3
//   launch sum_3 (t1 -> 4 bytes)             exp_2
//   launch sum_4 (t2 -> 4 bytes)             sum_4
//
//   8 MB alive at once                       4 MB
//
// It looks one launch ahead, so it may find a worse order than the user's: then that one stays.
#include "tiny_compile/loops/order.h"

#include <algorithm>
#include <set>

#include "tiny_compile/loops/lives.h"

namespace tiny_compile {
namespace {

class Orderer {
 public:
  explicit Orderer(const Program& program)
      : program_(program),
        reads_(program.launches.size()),
        writes_(program.launches.size()),
        waits_(program.launches.size()),
        readers_(program.buffers.size()),
        unread_(program.buffers.size()) {
    for (size_t launch = 0; launch < program.launches.size(); launch++) find_uses(launch);
    for (size_t launch = 0; launch < reads_.size(); launch++) {
      for (const int buffer : reads_[launch]) {
        readers_[buffer].push_back(static_cast<int>(launch));
        unread_[buffer]++;
        waits_[launch] += is_made(buffer);
      }
    }
  }

  std::vector<int> run() {
    for (size_t launch = 0; launch < waits_.size(); launch++) {
      if (waits_[launch] == 0) add(static_cast<int>(launch));
    }
    std::vector<int> order;
    while (!ready_.empty()) {
      order.push_back(ready_.begin()->second);
      ready_.erase(ready_.begin());
      finish(order.back());
    }
    return order;
  }

 private:
  void find_uses(size_t launch) {
    std::set<int> read, written;
    for (const int id : program_.launches[launch]) {
      for (const int buffer : loaded_buffers(program_.kernels[id])) read.insert(buffer);
      for (const int buffer : stored_buffers(program_.kernels[id])) written.insert(buffer);
    }
    for (const int buffer : written) read.erase(buffer);
    reads_[launch].assign(read.begin(), read.end());
    writes_[launch].assign(written.begin(), written.end());
  }

  bool is_made(int buffer) const {
    const Buffer& b = program_.buffers[buffer];
    return b.role != Role::Input && !b.size.is_constant(0);
  }
  int64_t bytes(int buffer) const {
    const Buffer& b = program_.buffers[buffer];
    return b.role == Role::Temporary ? b.size.constant() * size_of(b.type.dtype) : 0;
  }

  // Bytes that are alive after the launch and were not before it.
  int64_t growth(int launch) const {
    int64_t sum = 0;
    for (const int buffer : writes_[launch]) sum += bytes(buffer);
    for (const int buffer : reads_[launch]) {
      if (unread_[buffer] == 1) sum -= bytes(buffer);
    }
    return sum;
  }

  void add(int launch) { ready_.insert({growth(launch), launch}); }

  void finish(int launch) {
    for (const int buffer : reads_[launch]) {
      if (unread_[buffer] == 2) {  // whoever reads it last frees it
        for (const int reader : readers_[buffer]) {
          if (ready_.erase({growth(reader), reader}) == 0) continue;
          unread_[buffer]--;
          add(reader);
          unread_[buffer]++;
        }
      }
      unread_[buffer]--;
    }
    for (const int buffer : writes_[launch]) {
      for (const int reader : readers_[buffer]) {
        if (is_made(buffer) && --waits_[reader] == 0) add(reader);
      }
    }
  }

  const Program& program_;
  std::vector<std::vector<int>> reads_, writes_;  // of each launch
  std::vector<int> waits_;                        // buffers that it reads and nobody has made
  std::vector<std::vector<int>> readers_;         // launches, of each buffer
  std::vector<int> unread_;                       // readers that are still to come
  std::set<std::pair<int64_t, int>> ready_;       // by growth, then in the user's order
};

}  // namespace

Program with_launches(const Program& program, const std::vector<std::vector<int>>& launches) {
  Program result = program;
  result.launches.clear();
  result.kernels.clear();
  for (const std::vector<int>& launch : launches) {
    std::vector<int> kernels;
    for (const int id : launch) {
      kernels.push_back(static_cast<int>(result.kernels.size()));
      result.kernels.push_back(program.kernels[id]);
    }
    result.launches.push_back(std::move(kernels));
  }
  return result;
}

int64_t peak_bytes(const Program& program) {
  std::vector<int64_t> change(program.launches.size() + 1);
  for (const Life& life : lives(program)) {
    const Buffer& buffer = program.buffers[life.buffer];
    if (buffer.role != Role::Temporary) continue;
    const int64_t bytes = buffer.size.constant() * size_of(buffer.type.dtype);
    change[life.first] += bytes;
    change[life.last + 1] -= bytes;
  }
  int64_t alive = 0, most = 0;
  for (const int64_t step : change) most = std::max(most, alive += step);
  return most;
}

Program order_launches(const Program& program) {
  std::vector<std::vector<int>> launches;
  for (const int launch : Orderer(program).run()) launches.push_back(program.launches[launch]);
  Program other = with_launches(program, launches);
  const int64_t before = peak_bytes(program), after = peak_bytes(other);
  return after < before - before / 20 ? other : program;
}

}  // namespace tiny_compile
