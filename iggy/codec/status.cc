#include "iggy/codec/status.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace iggy {
namespace {

using enum base::ErrorCode;

// Both: raised by 0.8.0 and 0.9.x. A comment names the dialect when only one has it.
constexpr std::array kTable = std::to_array<StatusEntry>({
    {1, "error", kServerRefused},
    {2, "invalid_configuration", kServerRefused},
    {3, "invalid_command", kServerRefused},
    {4, "invalid_format", kServerRefused},
    {5, "feature_unavailable", kUnsupported},
    {6, "invalid_identifier", kServerRefused},
    {8, "disconnected", kUncertain},  // the server is stopping: the request may have been done
    {9, "cannot_establish_connection", kConnectionLost},
    {20, "resource_not_found", kNotFound},  // vsr: the target of a send or of an offset write
    {30, "stale_client", kConnectionLost},
    {31, "tcp_error", kUncertain},
    {40, "unauthenticated", kConnectionLost},  // log in again
    {41, "unauthorized", kPermission},
    {42, "invalid_credentials", kCredentials},
    {43, "invalid_username", kServerRefused},
    {44, "invalid_password", kServerRefused},
    {47, "user_inactive", kCredentials},  // legacy; vsr evicts
    {50, "invalid_personal_access_token_name", kServerRefused},
    {51, "personal_access_token_already_exists", kServerRefused},
    {52, "personal_access_tokens_limit_reached", kServerRefused},
    {53, "invalid_personal_access_token", kCredentials},
    {54, "personal_access_token_expired", kCredentials},
    {57, "transient_not_committed", kUncertain},      // vsr
    {58, "transient_not_accepted", kNotAccepted},     // vsr
    {59, "request_already_applied", kServerRefused},  // vsr: an old number; we never reuse one
    {61, "not_connected", kConnectionLost},
    {63, "client_shutdown", kConnectionLost},
    {64, "invalid_tls_domain", kServerRefused},
    {65, "invalid_tls_certificate_path", kServerRefused},
    {66, "invalid_tls_certificate", kServerRefused},
    {80, "invalid_size", kServerRefused},
    {81, "invalid_utf8", kServerRefused},
    {82, "invalid_number_encoding", kServerRefused},
    {85, "request_too_old", kServerRefused},  // after 0.9: a number below the window
    {100, "client_not_found", kConnectionLost},
    {101, "invalid_client_id", kServerRefused},
    {206, "connection_closed", kConnectionLost},
    {304, "empty_response", kUncertain},
    {1009, "stream_id_not_found", kNotFound},
    {1010, "stream_name_not_found", kNotFound},
    {1012, "stream_name_already_exists", kAlreadyExists},
    {1013, "invalid_stream_name", kServerRefused},
    {1014, "invalid_stream_id", kServerRefused},
    {1019, "invalid_topic_size", kServerRefused},
    {1020, "too_many_streams", kServerRefused},
    {2010, "topic_id_not_found", kNotFound},
    {2011, "topic_name_not_found", kNotFound},
    {2013, "topic_name_already_exists", kAlreadyExists},
    {2014, "invalid_topic_name", kServerRefused},
    {2015, "too_many_partitions", kServerRefused},
    {2018, "invalid_replication_factor", kServerRefused},
    {2019, "invalid_partitions_count", kServerRefused},
    {2021, "too_many_topics", kServerRefused},
    {3000, "cannot_create_partition", kServerRefused},
    {3001, "cannot_create_partitions_directory", kServerRefused},
    {3002, "cannot_create_partition_directory", kServerRefused},
    {3003, "cannot_open_partition_log_file", kServerRefused},
    {3004, "cannot_read_partitions", kServerRefused},
    {3005, "cannot_delete_partition", kServerRefused},
    {3006, "cannot_delete_partition_directory", kServerRefused},
    {3007, "partition_not_found", kNotFound},
    {3008, "no_partitions", kServerRefused},
    {3009, "topic_full", kServerRefused},
    {3013, "partition_id_space_exhausted", kServerRefused},  // vsr
    {3021, "consumer_offset_not_found", kNotFound},
    {3022, "not_resolved_consumer", kServerRefused},
    {3023, "cannot_open_consumer_offsets_file", kServerRefused},
    {3024, "too_many_consumer_offsets", kServerRefused},  // vsr
    {4007, "cannot_save_index_to_segment", kUncertain},   // legacy: the disk failed in the middle of a send
    {4009, "invalid_messages_count", kServerRefused},
    {4010, "cannot_append_message", kServerRefused},
    {4011, "cannot_read_message", kServerRefused},
    {4017, "too_big_user_headers", kInvalidRecord},
    {4018, "invalid_header_key", kInvalidRecord},
    {4019, "invalid_header_value", kInvalidRecord},
    {4022, "too_big_message_payload", kInvalidRecord},
    {4023, "too_many_messages", kServerRefused},
    {4024, "empty_message_payload", kInvalidRecord},
    {4025, "invalid_message_payload_length", kInvalidRecord},
    {4027, "invalid_message_checksum", kServerRefused},
    {4031, "non_zero_offset", kServerRefused},
    {4032, "non_zero_timestamp", kServerRefused},
    {4033, "missing_index", kServerRefused},
    {4034, "invalid_indexes_byte_size", kServerRefused},
    {4035, "invalid_indexes_count", kServerRefused},
    {4036, "invalid_messages_size", kServerRefused},
    {4037, "too_small_message", kServerRefused},
    {4038, "invalid_message_timestamp_delta", kServerRefused},  // vsr
    {4039, "invalid_batch_checksum", kServerRefused},           // vsr
    {4040, "invalid_header_kind", kInvalidRecord},
    {4041, "unsupported_option_key", kServerRefused},   // vsr
    {4042, "invalid_option_value", kServerRefused},     // vsr
    {4043, "options_block_too_large", kServerRefused},  // vsr
    {4100, "invalid_offset", kServerRefused},
    {4101, "invalid_reserved_field", kServerRefused},
    {4102, "segment_size_mismatch_at_open", kServerRefused},  // vsr
    {5000, "consumer_group_id_not_found", kNotFound},
    {5004, "consumer_group_name_already_exists", kAlreadyExists},
    {5006, "consumer_group_member_not_found", kServerRefused},
    {5009, "consumer_group_partition_not_owned", kServerRefused},  // vsr
    {10002, "cannot_read_file", kUncertain},
    {10003, "cannot_read_file_metadata", kUncertain},
    {10004, "cannot_seek_file", kUncertain},
    {10005, "cannot_append_to_file", kUncertain},
    {10006, "cannot_write_to_file", kUncertain},
    {10007, "cannot_overwrite_file", kUncertain},
    {10008, "cannot_delete_file", kUncertain},
    {10009, "cannot_sync_file", kUncertain},
    {10011, "cannot_read_index_position", kServerRefused},
    {11001, "shard_communication_error", kUncertain},
    {12001, "task_timeout", kUncertain},
    {13000, "io_error", kUncertain},
    {14001, "invalid_session", kConnectionLost},             // vsr
    {14003, "incompatible_protocol_version", kUnsupported},  // vsr
});
static_assert(std::ranges::is_sorted(kTable, {}, &StatusEntry::status));
static_assert(std::ranges::adjacent_find(kTable, {}, &StatusEntry::status) == kTable.end());

const StatusEntry* find(std::uint32_t status) {
  const auto* at = std::ranges::lower_bound(kTable, status, {}, &StatusEntry::status);
  return at != kTable.end() && at->status == status ? at : nullptr;
}

}  // namespace

std::span<const StatusEntry> status_table() { return kTable; }

std::string_view name_of_status(std::uint32_t status) {
  const StatusEntry* entry = find(status);
  return entry == nullptr ? "unknown_status" : entry->name;
}

base::Error error_of_status(std::uint32_t status, std::string operation) {
  base::check(status != 0, "status 0 is no error");
  const StatusEntry* entry = find(status);
  base::Error error(entry == nullptr ? kServerRefused : entry->code, std::move(operation), "",
                    std::string(name_of_status(status)));
  error.with_status(status);
  if (entry == nullptr) error.with_retry(base::Retry::kFromWatermark);  // done or not: who knows
  return error;
}

}  // namespace iggy
