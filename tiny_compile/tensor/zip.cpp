// What is a zip archive? Entries, each behind a header, then a directory of them, then where that
// begins. Only the directory counts; it is found from the end:
//
//   PK\3\4 a.npy <bytes> PK\3\4 b.npy <bytes> PK\1\2 a.npy .. PK\1\2 b.npy .. PK\5\6 2 entries ..
//
// The layout is PKWARE's APPNOTE.TXT; numbers are little-endian. A size that its 32 bits cannot hold is
// all ones there and stands in a zip64 field.
#include "tiny_compile/tensor/zip.h"

#include <algorithm>
#include <array>
#include <set>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

constexpr uint32_t kEntry = 0x04034b50, kDirectory = 0x02014b50, kEnd = 0x06054b50,
                   kWideEnd = 0x06064b50, kWideEndPlace = 0x07064b50;
constexpr size_t kEntryBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kWideEndBytes = 56,
                 kWideEndPlaceBytes = 20;
constexpr uint32_t kNarrowMost = 0xFFFFFFFF;
constexpr uint32_t kEncrypted = 1, kNameIsUtf8 = 1 << 11;

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++)
      table[i] = (table[i] >> 1) ^ (table[i] & 1 ? 0xEDB88320u : 0);
  }
  return table;
}

// Writing --------------------------------------------------------------------------------------

class Numbers {
 public:
  Numbers& u16(uint64_t value) { return put(value, 2); }
  Numbers& u32(uint64_t value) { return put(value, 4); }
  Numbers& u64(uint64_t value) { return put(value, 8); }
  std::string text;

 private:
  Numbers& put(uint64_t value, int bytes) {
    for (int k = 0; k < bytes; k++) text += static_cast<char>(value >> (8 * k));
    return *this;
  }
};

struct Stored {
  std::string name;
  uint32_t crc = 0;
  uint64_t size = 0, offset = 0;
};

// What header and directory share: 1980-01-01, stored, of version 2.0, or 4.5 where zip64.
void put_shared(Numbers& out, const Stored& entry, bool wide, uint64_t narrow_size) {
  const bool ascii = std::all_of(entry.name.begin(), entry.name.end(),
                                 [](char c) { return static_cast<signed char>(c) >= 0; });
  out.u16(wide ? 45 : 20).u16(ascii ? 0 : kNameIsUtf8).u16(0).u16(0).u16(0x21);
  out.u32(entry.crc).u32(narrow_size).u32(narrow_size).u16(entry.name.size());
}

std::string entry_header(const Stored& entry, uint64_t wide_from) {
  const bool wide = entry.size >= wide_from;
  Numbers out;
  put_shared(out.u32(kEntry), entry, wide, wide ? kNarrowMost : entry.size);
  out.u16(wide ? 20 : 0);
  out.text += entry.name;
  if (wide) out.u16(1).u16(16).u64(entry.size).u64(entry.size);
  return out.text;
}

std::string directory_row(const Stored& entry, uint64_t wide_from) {
  const bool wide = entry.size >= wide_from, far = entry.offset >= wide_from;
  const uint64_t extra = (wide ? 16 : 0) + (far ? 8 : 0);
  Numbers out;
  put_shared(out.u32(kDirectory).u16(45), entry, wide || far, wide ? kNarrowMost : entry.size);
  out.u16(extra ? extra + 4 : 0).u16(0).u16(0).u16(0).u32(0);
  out.u32(far ? kNarrowMost : entry.offset);
  out.text += entry.name;
  if (extra) out.u16(1).u16(extra);
  if (wide) out.u64(entry.size).u64(entry.size);
  if (far) out.u64(entry.offset);
  return out.text;
}

std::string end_of(uint64_t count, uint64_t size, uint64_t offset, uint64_t wide_from) {
  const bool wide = count >= 0xFFFF || size >= wide_from || offset >= wide_from;
  Numbers out;
  if (wide) {
    out.u32(kWideEnd).u64(kWideEndBytes - 12).u16(45).u16(45).u32(0).u32(0);
    out.u64(count).u64(count).u64(size).u64(offset);
    out.u32(kWideEndPlace).u32(0).u64(offset + size).u32(1);
  }
  out.u32(kEnd).u16(0).u16(0).u16(wide ? 0xFFFF : count).u16(wide ? 0xFFFF : count);
  out.u32(wide ? kNarrowMost : size).u32(wide ? kNarrowMost : offset).u16(0);
  return out.text;
}

// Reading --------------------------------------------------------------------------------------

class Archive {
 public:
  Archive(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  std::vector<ZipEntry> entries() {
    find_directory();
    std::vector<ZipEntry> result;
    size_t at = directory_;
    for (uint64_t k = 0; k < count_; k++) result.push_back(read_row(at));
    if (at != directory_ + directory_size_) refuse("its directory is longer than its entries");
    check_apart();
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    fail(path_, ": ", why, "; the file is damaged or no zip archive: save it again");
  }

  uint64_t number(size_t at, size_t bytes) const {
    if (at > bytes_.size() || bytes > bytes_.size() - at) refuse("it is cut off");
    uint64_t value = 0;
    for (size_t k = bytes; k-- > 0;)
      value = 256 * value + static_cast<unsigned char>(bytes_[at + k]);
    return value;
  }
  std::string_view part(uint64_t at, uint64_t bytes) const {
    if (at > bytes_.size() || bytes > bytes_.size() - at) refuse("it is cut off");
    return bytes_.substr(at, bytes);
  }

  // The end's record is the last in which the comment behind it reaches the file's end.
  size_t find_end() const {
    if (bytes_.size() < kEndBytes) refuse("it is cut off");
    const size_t last = bytes_.size() - kEndBytes;
    for (size_t back = 0; back <= std::min<size_t>(last, 0xFFFF); back++) {
      const size_t at = last - back;
      if (number(at, 4) == kEnd && number(at + 20, 2) == back) return at;
    }
    refuse("its directory is missing");
  }

  void find_directory() {
    size_t end = find_end();
    count_ = number(end + 10, 2);
    directory_size_ = number(end + 12, 4);
    directory_ = number(end + 16, 4);
    const bool is_wide =
        end >= kWideEndPlaceBytes && number(end - kWideEndPlaceBytes, 4) == kWideEndPlace;
    const bool one_disk = number(end + 4, 4) == 0;
    if (!one_disk) refuse("it is one of several parts");
    if (is_wide) {
      const size_t wide = number(end - kWideEndPlaceBytes + 8, 8);
      if (wide > end || number(wide, 4) != kWideEnd) refuse("its zip64 record is missing");
      count_ = number(wide + 32, 8);
      directory_size_ = number(wide + 40, 8);
      directory_ = number(wide + 48, 8);
      end = wide;
    }
    if (directory_ > end || directory_size_ != end - directory_)
      refuse("its directory is not where its end says");
    if (count_ > directory_size_ / kDirectoryBytes) refuse("its directory is too short");
  }

  struct Row {
    uint64_t flags, method, crc, packed, size, name_bytes, extra_bytes, comment_bytes, offset;
  };

  // The entry of the directory's row at `at`, which moves on to the next.
  ZipEntry read_row(size_t& at) {
    if (number(at, 4) != kDirectory) refuse("its directory is broken");
    Row row{number(at + 8, 2),  number(at + 10, 2), number(at + 16, 4),
            number(at + 20, 4), number(at + 24, 4), number(at + 28, 2),
            number(at + 30, 2), number(at + 32, 2), number(at + 42, 4)};
    const std::string name(part(at + kDirectoryBytes, row.name_bytes));
    const size_t extra = at + kDirectoryBytes + row.name_bytes;
    read_wide(row, part(extra, row.extra_bytes));
    at = extra + row.extra_bytes + row.comment_bytes;
    if (at > directory_ + directory_size_) refuse("its directory is broken");
    check_name(name);
    if (row.flags & kEncrypted)
      fail(path_, ": '", name, "' is encrypted; save it without a password");
    if (row.method != 0)
      fail(path_, ": '", name, "' is compressed (method ", row.method,
           "); write it with np.savez, not np.savez_compressed, or unpack and zip -0 it");
    if (row.packed != row.size) refuse(str("'", name, "' has two sizes"));
    const std::string_view content = content_of(row, name);
    if (checksum(content) != row.crc) refuse(str("'", name, "' is not what its checksum says"));
    return {name, {content}};
  }

  void check_name(const std::string& name) {
    if (!is_utf8(name)) refuse("the name of an entry is no UTF-8");
    if (!names_.insert(name).second) refuse(str("'", name, "' stands in it twice"));
  }

  // zip64: field 1 holds those of size, packed size and offset that are all ones in the row.
  void read_wide(Row& row, std::string_view extra) const {
    const size_t begin = static_cast<size_t>(extra.data() - bytes_.data());
    for (size_t k = 0; k + 4 <= extra.size();) {
      const size_t id = number(begin + k, 2), bytes = number(begin + k + 2, 2);
      if (bytes > extra.size() - k - 4) refuse("a field of its directory is cut off");
      size_t next = begin + k + 4;
      const size_t stop = next + bytes;
      for (uint64_t* value : {&row.size, &row.packed, &row.offset}) {
        if (id != 1 || *value != kNarrowMost) continue;
        if (stop - next < 8) refuse("a zip64 field is cut off");
        *value = number(next, 8);
        next += 8;
      }
      k += 4 + bytes;
    }
  }

  std::string_view content_of(const Row& row, const std::string& name) {
    if (row.offset > directory_ || number(row.offset, 4) != kEntry)
      refuse(str("'", name, "' is not where the directory says"));
    const uint64_t name_bytes = number(row.offset + 26, 2);
    const uint64_t begin = row.offset + kEntryBytes + name_bytes + number(row.offset + 28, 2);
    if (part(row.offset + kEntryBytes, name_bytes) != name)
      refuse(str("'", name, "' has another name where it stands"));
    if (begin > directory_ || row.size > directory_ - begin)
      refuse(str("'", name, "' reaches into the directory"));
    places_.push_back({row.offset, begin + row.size});
    return part(begin, row.size);
  }

  void check_apart() {
    std::sort(places_.begin(), places_.end());
    for (size_t k = 1; k < places_.size(); k++) {
      if (places_[k].first < places_[k - 1].second) refuse("two of its entries overlap");
    }
  }

  std::string_view bytes_;
  const std::string& path_;
  uint64_t count_ = 0, directory_ = 0, directory_size_ = 0;
  std::set<std::string> names_;
  std::vector<std::pair<uint64_t, uint64_t>> places_;
};

}  // namespace

uint32_t checksum(std::string_view bytes, uint32_t before) {
  static const std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = ~before;
  for (const char c : bytes)
    crc = table[(crc ^ static_cast<unsigned char>(c)) & 255] ^ (crc >> 8);
  return ~crc;
}

// RFC 3629: no byte too many, no surrogate, nothing above U+10FFFF.
bool is_utf8(std::string_view text) {
  for (size_t k = 0; k < text.size();) {
    const auto byte = [&](size_t i) {
      return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const unsigned first = byte(k);
    const size_t more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    if (first >= 0x80 && (first < 0xC2 || first > 0xF4)) return false;
    for (size_t i = 1; i <= more; i++) {
      if ((byte(k + i) & 0xC0) != 0x80) return false;
    }
    const unsigned second = byte(k + 1);
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
      return false;
    k += 1 + more;
  }
  return true;
}

std::vector<std::string_view> zip_pieces(const std::vector<ZipEntry>& entries,
                                         std::vector<std::string>& frame, uint64_t wide_from) {
  frame.assign(entries.size() + 1, {});
  std::vector<std::string_view> pieces;
  std::string directory;
  uint64_t offset = 0;
  for (size_t k = 0; k < entries.size(); k++) {
    Stored stored{entries[k].name, 0, 0, offset};
    for (const std::string_view piece : entries[k].pieces) {
      stored.crc = checksum(piece, stored.crc);
      stored.size += piece.size();
    }
    frame[k] = entry_header(stored, wide_from);
    pieces.push_back(frame[k]);
    pieces.insert(pieces.end(), entries[k].pieces.begin(), entries[k].pieces.end());
    directory += directory_row(stored, wide_from);
    offset += frame[k].size() + stored.size;
  }
  frame.back() = directory + end_of(entries.size(), directory.size(), offset, wide_from);
  pieces.push_back(frame.back());
  return pieces;
}

std::vector<ZipEntry> read_zip(std::string_view archive, const std::string& path) {
  return Archive(archive, path).entries();
}

}  // namespace tiny_compile
