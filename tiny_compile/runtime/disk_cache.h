// Compiled binaries kept between processes: content-addressed, private, checked
// when read, bounded.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tiny_compile {

// 128 bits in hexadecimal of named parts; every part counts, and so does where one ends.
std::string content_key(const std::vector<std::pair<std::string, std::string>>& parts);

// Where entries lie: $TC_CACHE_DIR, else tiny_compile in $XDG_CACHE_HOME or ~/.cache; "" where
// there is no such place, or it is not ours alone: then nothing is cached on disk.
std::string cache_directory();

// The path of an entry whose content is what was stored, else nothing; a damaged
// one is removed.
std::optional<std::string> find_cached(const std::string& directory, const std::string& key);

// Moves the file at `path` into the cache, all or nothing; false where it could not be stored
// (a full disk, say) and still lies at `path`. The entries used least recently go beyond
// $TC_CACHE_BYTES (1 GiB) or 2048 entries; files that are not ours are never touched.
bool store_cached(const std::string& directory, const std::string& key,
                  const std::string& path);

// The same for a content in memory.
bool store_text(const std::string& directory, const std::string& key, const std::string& text);

// A new directory for this process alone, removed with the files in it.
class TemporaryDirectory {
 public:
  // path() is "" where `place` cannot be written to.
  explicit TemporaryDirectory(const std::string& place);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// "" where there is none.
std::string read_file(const std::string& path);

}  // namespace tiny_compile
