// Each access to what threads share is compared with the last ones: what would be a race on a machine, or
// a message that has not come, is an error here.
#include "tiny_compile/tile/cluster.h"

#include <algorithm>
#include <cstring>

namespace tiny_compile {
namespace {

constexpr uint64_t kUnset = 0xffffffffffffffffull;

bool stays(const Array& array) {
  return array.space == Space::Memory || array.space == Space::Kept;
}

}  // namespace

OwnMemory::OwnMemory(const Tile& tile) {
  for (const Array& array : tile.arrays)
    arrays.emplace_back(stays(array) ? static_cast<size_t>(array.size.constant()) : 0,
                        array.space == Space::Kept ? 0 : kUnset);
}

Cluster::Cluster(const Tile& tile, int64_t number)
    : Cluster(tile, ThreadIntegers(tile, number), 32 * tile.warps) {}

Cluster::Cluster(const Tile& tile, int64_t begin, int64_t end)
    : Cluster(tile, ThreadIntegers(begin, end), kTurns) {}

Cluster::Cluster(const Tile& tile, ThreadIntegers known, int block)
    : integers(std::move(known)),
      tile_(tile),
      block_(block),
      threads_(block_ * tile.cluster),
      stretch_(static_cast<size_t>(tile.cluster)) {
  values_.resize(tile.kernel.scalars.size());
  for (const Array& array : tile.arrays) {
    const int copies = array.space == Space::Register ? threads_
                       : array.space == Space::Shared ? tile.cluster
                                                      : 1;
    const size_t elements =
        static_cast<size_t>(array.size.constant()) * static_cast<size_t>(copies);
    arrays_.emplace_back(stays(array) ? 0 : elements, kUnset);
    accesses_.emplace_back(array.space == Space::Register ? 0 : elements);
  }
}

void Cluster::exchange(OwnMemory& own) {
  for (size_t k = 0; k < arrays_.size(); k++)
    if (stays(tile_.arrays[k])) arrays_[k].swap(own.arrays[k]);
}

void Cluster::spread(int turns) {
  stretch_[0]++;  // what was read before is read
  integers.spread(turns);
  for (std::vector<uint64_t>& values : values_)
    if (!values.empty()) std::fill(values.begin(), values.begin() + turns, values[0]);
}

void Cluster::pass_barrier(const Threads& threads) {
  std::vector<int> come(stretch_.size());
  for (int t : threads) come[rank_of(t)]++;
  for (size_t rank = 0; rank < come.size(); rank++) {
    if (come[rank] == 0) continue;
    require_all(come[rank], block_);
    stretch_[rank]++;
  }
}

void Cluster::pass_cluster_barrier(const Threads& threads) {
  require_all(static_cast<int>(threads.size()), threads_);
  for (int64_t& stretch : stretch_) stretch++;
  of_cluster_++;
  is_elsewhere_ = false;
}

void Cluster::start(const Threads& threads) {
  require_all(static_cast<int>(threads.size()), threads_);
  has_started_ = true;
}

void Cluster::end() const {
  if (is_elsewhere_)
    fail("tile ", tile_.kernel.name, ": blocks end while others use what they hold");
  for (const auto& [array, message] : messages_) {
    if (!message.has_come)
      fail("tile ", tile_.kernel.name, ": blocks end, and ", tile_.arrays[array].name,
           " is still on its way");
  }
}

void Cluster::gather(int id, const Threads& threads, size_t from, int n, Lanes& lanes) const {
  const Scalar& s = tile_.kernel.scalars[id];
  if (s.kind == ScalarKind::Constant) return fill(s.value, n, lanes);
  if (values_[id].empty()) fail("a tile program uses $", id, " before it is defined");
  lanes.dtype = s.dtype;
  const size_t width = width_of(s.dtype);
  for (int k = 0; k < n; k++)
    std::memcpy(lanes.data + static_cast<size_t>(k) * width,
                &values_[id][threads[from + static_cast<size_t>(k)]], width);
  if (s.dtype != DType::boolean) return;
  for (int k = 0; k < n; k++)
    lanes.data[k] &= std::byte{1};  // what nobody wrote is a bool as well
}

uint64_t Cluster::value(int id, int thread) const {
  Lanes one;
  gather(id, {thread}, 0, 1, one);
  uint64_t bits = 0;
  std::memcpy(&bits, one.data, width_of(tile_.kernel.scalars[id].dtype));
  return bits;
}

Integers Cluster::nearest(int id, int64_t last, const Threads& threads) const {
  Integers all;
  for (int t : threads) {
    Lanes one;
    gather(id, {t}, 0, 1, one);
    const int64_t number = lane_integer(one, 0);
    const bool is_beyond = one.dtype == DType::u64 && number < 0;
    all.push_back(is_beyond ? last : std::clamp<int64_t>(number, 0, last));
  }
  return all;
}

void Cluster::set_value(int id, int thread, uint64_t bits) {
  values_[id].resize(static_cast<size_t>(threads_));
  values_[id][thread] = bits;
}

void Cluster::scatter(int id, const Threads& threads, size_t from, int n, const Lanes& lanes) {
  const size_t width = width_of(tile_.kernel.scalars[id].dtype);
  for (int k = 0; k < n; k++) {
    uint64_t bits = 0;
    std::memcpy(&bits, lanes.data + static_cast<size_t>(k) * width, width);
    set_value(id, threads[from + static_cast<size_t>(k)], bits);
  }
}

uint64_t Cluster::element_read(int array, int64_t index, int thread) {
  const size_t at = place(array, index, thread);
  if (const auto sent = messages_.find(array); sent != messages_.end()) {
    if (!sent->second.has_come || index % tile_.cluster != rank_of(thread))
      fail("tile ", tile_.kernel.name, ": thread ", thread, " reads ", tile_.arrays[array].name,
           "[", index, "], which has not come");
    return arrays_[array][at];
  }
  const bool shared = tile_.arrays[array].space != Space::Register;
  if (shared && !accesses_[array][at].reads(thread, stretch_of(array, index, thread)))
    fail_race("reads", array, index, thread);
  return arrays_[array][at];
}

void Cluster::forget(int array) {
  std::fill(arrays_[array].begin(), arrays_[array].end(), kUnset);
}

void Cluster::element_write(int array, int64_t index, int thread, uint64_t bits) {
  const size_t at = place(array, index, thread);
  arrays_[array][at] = bits;
  const bool shared = tile_.arrays[array].space != Space::Register;
  if (shared && !accesses_[array][at].writes(thread, stretch_of(array, index, thread)))
    fail_race("writes", array, index, thread);
}

uint64_t& Cluster::element_to_add(int array, int64_t index, int thread) {
  const size_t at = place(array, index, thread);
  if (!accesses_[array][at].adds(stretch_of(array, index, thread)))
    fail_race("adds to", array, index, thread);
  return arrays_[array][at];
}

void Cluster::send(int array, int64_t index, int thread, uint64_t bits) {
  const size_t at = place(array, index, thread);
  std::vector<bool>& sent = messages_[array].sent;
  sent.resize(arrays_[array].size());
  if (!has_started_ || sent[at])
    fail("tile ", tile_.kernel.name, ": thread ", thread, " sends ", tile_.arrays[array].name,
         "[", index, "]", has_started_ ? " a second time" : " before all blocks are there");
  sent[at] = true;
  arrays_[array][at] = bits;
}

void Cluster::await(int array, const Threads& threads) {
  require_all(static_cast<int>(threads.size()), threads_);
  Message& message = messages_[array];
  message.sent.resize(arrays_[array].size());
  const auto missing = std::find(message.sent.begin(), message.sent.end(), false);
  if (missing != message.sent.end())
    fail("tile ", tile_.kernel.name, " waits for ", tile_.arrays[array].name, "[",
         missing - message.sent.begin(), "], which nobody sends");
  message.has_come = true;
}

void Cluster::read_element(int id, int array, const Expr& place, const Expr& lane_xor,
                           const Threads& threads) {
  const Integers index = integers.evaluate(place, threads),
                 mask = integers.evaluate(lane_xor, threads);
  std::map<int, int64_t> of_thread;
  for (size_t n = 0; n < threads.size(); n++) of_thread[threads[n]] = index[n];
  std::vector<uint64_t> bits;
  for (size_t n = 0; n < threads.size(); n++) {
    const auto from = of_thread.find(threads[n] ^ static_cast<int>(mask[n]));
    if (from == of_thread.end())
      fail("tile ", tile_.kernel.name, ": thread ", threads[n],
           " shuffles with one that is not there");
    bits.push_back(element_read(array, from->second, from->first));
  }
  for (size_t n = 0; n < threads.size(); n++) set_value(id, threads[n], bits[n]);
}

void Cluster::vote(int id, const Threads& threads) {
  const Scalar& votes = tile_.kernel.scalars[id];
  std::map<int, uint64_t> so_far;  // of each warp
  std::vector<uint64_t> below;
  for (int t : threads) {
    uint64_t& count = so_far[t / kLanes];
    below.push_back(count);
    count += value(votes.operands[0], t) != 0;
  }
  for (size_t n = 0; n < threads.size(); n++)
    set_value(id, threads[n], votes.step == 1 ? below[n] : so_far[threads[n] / kLanes]);
}

void Cluster::fail_race(const char* does, int array, int64_t index, int thread) const {
  fail("tile ", tile_.kernel.name, ": thread ", thread, " ", does, " ",
       tile_.arrays[array].name, "[", index, "], which another writes between two barriers");
}

void Cluster::require_all(int come, int all) const {
  if (come != all)
    fail("tile ", tile_.kernel.name, ": a barrier that ", come, " threads of ", all,
         " come to");
}

size_t Cluster::place(int array, int64_t index, int thread) const {
  const Array& a = tile_.arrays[array];
  const int64_t size = a.size.constant();
  if (index < 0 || index >= size)
    fail("tile ", tile_.kernel.name, " uses element ", index, " of ", a.name, "[", size, "]");
  const int64_t copy = a.space == Space::Register ? thread
                       : a.space == Space::Shared ? rank_of(thread)
                                                  : 0;
  return static_cast<size_t>(copy * size + index);
}

int64_t Cluster::stretch_of(int array, int64_t index, int thread) {
  const Space space = tile_.arrays[array].space;
  if (space != Space::Cluster) return stretch_[rank_of(thread)];
  const bool is_elsewhere = index % tile_.cluster != rank_of(thread);
  if (is_elsewhere && of_cluster_ == 0)
    fail("tile ", tile_.kernel.name, ": thread ", thread, " uses ", tile_.arrays[array].name,
         "[", index, "] before all blocks are there");
  is_elsewhere_ = is_elsewhere_ || is_elsewhere;
  return of_cluster_;
}

}  // namespace tiny_compile
