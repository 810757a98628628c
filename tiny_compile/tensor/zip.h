// Zip archives whose entries are not compressed: what np.savez writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tiny_compile {

struct ZipEntry {
  std::string name;                      // UTF-8
  std::vector<std::string_view> pieces;  // of its bytes; of the caller's memory
};

// The archive in pieces, which are those of the entries and of `frame`, where the rest is kept.
// Sizes and offsets from `wide_from` on are written in 64 bits (zip64).
std::vector<std::string_view> zip_pieces(const std::vector<ZipEntry>& entries,
                                         std::vector<std::string>& frame,
                                         uint64_t wide_from = 0xFFFFFFFF);

// Its entries, each one piece of `archive`. Throws tc::Error, which begins with `path`, for an entry
// that is compressed or encrypted, and for an archive that is cut off, damaged (by its checksums),
// or whose parts overlap or disagree.
std::vector<ZipEntry> read_zip(std::string_view archive, const std::string& path);

bool is_utf8(std::string_view text);
uint32_t checksum(std::string_view bytes, uint32_t before = 0);  // CRC-32

}  // namespace tiny_compile
