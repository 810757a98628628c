// Compiled binaries kept between processes: content-addressed, private, checked when read,
// bounded.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tiny_compile {

// 128 bits in hexadecimal of named parts; every part counts, and so does where one ends.
std::string content_key(const std::vector<std::pair<std::string, std::string>>& parts);

// Where entries lie: $TC_CACHE_DIR, else $XDG_CACHE_HOME/tiny_compile, else
// ~/.cache/tiny_compile.
// "" where there is no such place, or it is not ours alone: then nothing is cached on disk.
std::string cache_directory();

// The path of an entry whose content is what was stored, else nothing; a damaged one is
// removed.
std::optional<std::string> find_cached(const std::string& directory, const std::string& key);

// Moves the file at `path` into the cache, all or nothing; returns where it lies now: the old
// path where it could not be stored (a full disk, say). Old entries go beyond $TC_CACHE_BYTES
// (1 GiB).
std::string store_cached(const std::string& directory, const std::string& key,
                         const std::string& path);

// A new empty file for this process alone, in the cache's directory or else in /tmp.
std::string temporary_file(const std::string& directory);

}  // namespace tiny_compile
