#include "state/testing/power_cut_vfs.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/check.h"

namespace state::testing {

namespace {

// What stood where an unsynced write went.
struct Before {
  std::string path;
  std::int64_t at = 0, size = 0;  // of the file
  std::vector<char> bytes;
};

struct Disk {
  bool frozen = false;
  std::uint64_t writes_left = 0;  // 0 = no end in sight
  std::deque<Before> unsynced;    // oldest first
};

}  // namespace

struct PowerCutVfs::Impl {
  sqlite3_vfs vfs{};
  sqlite3_vfs* real = nullptr;
  std::map<std::string, Disk> disks;

  static std::string folder_of(std::string_view path) { return std::string(path.substr(0, path.rfind('/'))); }
  Disk& disk_of(std::string_view path) { return disks[folder_of(path)]; }
};

namespace {

// Lies before the real file in the same block of memory.
struct File {
  sqlite3_file base;
  PowerCutVfs::Impl* owner;
  const char* path;  // SQLite keeps the name as long as the file is open
};
constexpr int kFileSize = (static_cast<int>(sizeof(File)) + 15) / 16 * 16;

File& self_of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
sqlite3_file* real_of(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + kFileSize);
}
PowerCutVfs::Impl& impl_of(sqlite3_vfs* vfs) { return *static_cast<PowerCutVfs::Impl*>(vfs->pAppData); }
Disk& disk_of(sqlite3_file* file) { return self_of(file).owner->disk_of(self_of(file).path); }

void remember(sqlite3_file* f, std::int64_t at, std::int64_t length) {
  Before before;
  before.path = self_of(f).path;
  before.at = at;
  sqlite3_int64 size = 0;
  real_of(f)->pMethods->xFileSize(real_of(f), &size);
  before.size = size;
  if (at < size) {
    before.bytes.resize(static_cast<std::size_t>(std::min<std::int64_t>(length, size - at)));
    real_of(f)->pMethods->xRead(real_of(f), before.bytes.data(), static_cast<int>(before.bytes.size()), at);
  }
  disk_of(f).unsynced.push_back(std::move(before));
}

int write(sqlite3_file* f, const void* from, int length, sqlite3_int64 at) {
  Disk& disk = disk_of(f);
  if (disk.frozen) return SQLITE_OK;
  remember(f, at, length);
  if (disk.writes_left > 0 && --disk.writes_left == 0) {
    disk.frozen = true;
    length /= 2;
    if (length == 0) return SQLITE_OK;
  }
  return real_of(f)->pMethods->xWrite(real_of(f), from, length, at);
}

int truncate(sqlite3_file* f, sqlite3_int64 size) {
  if (disk_of(f).frozen) return SQLITE_OK;
  sqlite3_int64 now = 0;
  real_of(f)->pMethods->xFileSize(real_of(f), &now);
  remember(f, size, std::max<sqlite3_int64>(now - size, 0));
  return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

int sync(sqlite3_file* f, int) {
  Disk& disk = disk_of(f);
  if (disk.frozen) return SQLITE_OK;
  const std::string_view path = self_of(f).path;
  std::erase_if(disk.unsynced, [path](const Before& before) { return before.path == path; });
  return SQLITE_OK;
}

const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = [](sqlite3_file* f) { return real_of(f)->pMethods->xClose(real_of(f)); },
    .xRead = [](sqlite3_file* f, void* to, int n,
                sqlite3_int64 at) { return real_of(f)->pMethods->xRead(real_of(f), to, n, at); },
    .xWrite = write,
    .xTruncate = truncate,
    .xSync = sync,
    .xFileSize = [](sqlite3_file* f, sqlite3_int64* size) { return real_of(f)->pMethods->xFileSize(real_of(f), size); },
    .xLock = [](sqlite3_file* f, int level) { return real_of(f)->pMethods->xLock(real_of(f), level); },
    .xUnlock = [](sqlite3_file* f, int level) { return real_of(f)->pMethods->xUnlock(real_of(f), level); },
    .xCheckReservedLock = [](sqlite3_file* f,
                             int* out) { return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out); },
    .xFileControl = [](sqlite3_file* f, int op,
                       void* arg) { return real_of(f)->pMethods->xFileControl(real_of(f), op, arg); },
    .xSectorSize = [](sqlite3_file* f) { return real_of(f)->pMethods->xSectorSize(real_of(f)); },
    // No promise of atomic or ordered writes: what SQLite relies on must be its own syncs.
    .xDeviceCharacteristics = [](sqlite3_file*) { return 0; },
    .xShmMap = [](sqlite3_file* f, int page, int size, int extend,
                  void volatile** out) { return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out); },
    .xShmLock = [](sqlite3_file* f, int offset, int n,
                   int flags) { return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags); },
    .xShmBarrier = [](sqlite3_file* f) { real_of(f)->pMethods->xShmBarrier(real_of(f)); },
    .xShmUnmap = [](sqlite3_file* f, int drop) { return real_of(f)->pMethods->xShmUnmap(real_of(f), drop); },
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* memory, int flags, int* out_flags) {
  PowerCutVfs::Impl& impl = impl_of(vfs);
  File* file = new (memory) File{};
  const int code = impl.real->xOpen(impl.real, name, real_of(memory), flags, out_flags);
  if (code != SQLITE_OK) return code;
  file->owner = &impl;
  file->path = name == nullptr ? "" : name;
  file->base.pMethods = &kMethods;
  return SQLITE_OK;
}

}  // namespace

PowerCutVfs::PowerCutVfs() : impl_(std::make_unique<Impl>()) {
  impl_->real = sqlite3_vfs_find(nullptr);
  impl_->vfs = *impl_->real;
  impl_->vfs.zName = "power_cut";
  impl_->vfs.pAppData = impl_.get();
  impl_->vfs.szOsFile = kFileSize + impl_->real->szOsFile;
  impl_->vfs.xOpen = open_file;
  impl_->vfs.xDelete = [](sqlite3_vfs* vfs, const char* name, int) {
    Disk& disk = impl_of(vfs).disk_of(name);
    if (disk.frozen) return SQLITE_OK;
    std::erase_if(disk.unsynced, [name](const Before& before) { return before.path == name; });
    return impl_of(vfs).real->xDelete(impl_of(vfs).real, name, 0);
  };
  impl_->vfs.xAccess = [](sqlite3_vfs* vfs, const char* name, int flags, int* out) {
    return impl_of(vfs).real->xAccess(impl_of(vfs).real, name, flags, out);
  };
  impl_->vfs.xFullPathname = [](sqlite3_vfs* vfs, const char* name, int size, char* out) {
    return impl_of(vfs).real->xFullPathname(impl_of(vfs).real, name, size, out);
  };
  base::check(sqlite3_vfs_register(&impl_->vfs, 1) == SQLITE_OK, "the file layer is registered");
}

PowerCutVfs::~PowerCutVfs() { sqlite3_vfs_unregister(&impl_->vfs); }

void PowerCutVfs::freeze(const std::string& folder) { impl_->disks[folder].frozen = true; }
void PowerCutVfs::freeze_after(const std::string& folder, std::uint64_t writes) {
  impl_->disks[folder].writes_left = writes;
}
bool PowerCutVfs::is_frozen(const std::string& folder) const {
  const auto disk = impl_->disks.find(folder);
  return disk != impl_->disks.end() && disk->second.frozen;
}
std::uint64_t PowerCutVfs::unsynced(const std::string& folder) const {
  const auto disk = impl_->disks.find(folder);
  return disk == impl_->disks.end() ? 0 : disk->second.unsynced.size();
}

void PowerCutVfs::cut_power(const std::string& folder, std::uint64_t keep) {
  Disk& disk = impl_->disks[folder];
  base::check(disk.frozen, "the process has ended before its machine does");
  while (disk.unsynced.size() > keep) {
    const Before& last = disk.unsynced.back();
    if (const int file = ::open(last.path.c_str(), O_RDWR | O_CLOEXEC); file >= 0) {
      const auto put = ::pwrite(file, last.bytes.data(), last.bytes.size(), last.at);
      base::check(put == static_cast<ssize_t>(last.bytes.size()), "what was there can be put back");
      base::check(::ftruncate(file, last.size) == 0, "the old size can be set");
      ::close(file);
    }
    disk.unsynced.pop_back();
  }
  disk.unsynced.clear();
  ::unlink((folder + "/state.db-shm").c_str());  // is no file, but memory
}

void PowerCutVfs::thaw(const std::string& folder) {
  Disk& disk = impl_->disks[folder];
  disk.frozen = false;
  disk.writes_left = 0;
}
void PowerCutVfs::forget(const std::string& folder) { impl_->disks.erase(folder); }

}  // namespace state::testing
