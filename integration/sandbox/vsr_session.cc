// Servers 0.9.x: 256-byte headers, answers carry the request's number. Sends are answered in order here, too.
#include <algorithm>
#include <utility>

#include "iggy/codec/vsr.h"
#include "integration/sandbox/session.h"

namespace sandbox {
namespace {

namespace vsr = iggy::vsr;

constexpr std::uint32_t kPoll = 100;

enum Reason : std::uint8_t { kNoSession = 1, kBadCredentials = 9, kBadToken = 10, kUserIsInactive = 11 };

// Refused when the request is looked at, before it is replicated: a status, never a result section.
bool is_admission_refusal(std::uint32_t code) {
  return code == 3 || code == 4 || code == status::kTopicSize || code == status::kTooManyPartitions ||
         code == status::kOptionKey || code == status::kOptionValue || code == 4043;
}

class VsrSession final : public Session {
 public:
  VsrSession(Services& services, Wire& wire, std::string peer) : services_(services), wire_(wire) {
    caller_.client_id = ++services_.last_client_id;
    caller_.address = std::move(peer);
    caller_.node = services_.node;
    services_.broker.connect(caller_);
  }
  ~VsrSession() override { services_.broker.disconnect(caller_); }
  VsrSession(const VsrSession&) = delete;
  VsrSession& operator=(const VsrSession&) = delete;

  std::size_t header_size() const override { return vsr::kHeaderSize; }
  std::optional<std::size_t> body_size(base::ByteView bytes) override {
    const auto header = vsr::read_request_header(bytes);
    if (!header) return std::nullopt;
    return header->size - vsr::kHeaderSize;
  }
  void request(base::ByteView bytes, std::shared_ptr<base::Buffer> body) override;
  void goodbye() override {}  // EOF without a word

 private:
  void refuse_with(const vsr::RequestHeader& header, std::uint32_t code);
  void evict(std::uint8_t reason) {
    // Without a session the header names the connection, not the client.
    wire_.answer(vsr::encode_eviction({caller_.client_id, 0}, {0, 0, reason}));
  }
  // Someone else may have logged in with our client id meanwhile.
  bool is_bound() const { return caller_.user && bound_ && !caller_.vsr_client.is_zero(); }
  void login(const vsr::RequestHeader& header, const iggy::Request& request);
  void logout(const vsr::RequestHeader& header);
  void poll(const vsr::RequestHeader& header, const iggy::Request& request);
  // What edge.5 says to a poll that does not parse.
  void answer_empty_poll(const vsr::RequestHeader& header) {
    wire_.answer(vsr::encode_reply(iggy::PollMessages{}, header, iggy::PolledMessages{}, services_.commit));
  }
  void send(const vsr::RequestHeader& header, const iggy::Request& request, std::shared_ptr<base::Buffer> body);

  Services& services_;
  Wire& wire_;
  Caller caller_;
  bool bound_ = false;
  std::uint64_t session_ = 0;
};

void VsrSession::request(base::ByteView bytes, std::shared_ptr<base::Buffer> body) {
  const auto header = vsr::read_request_header(bytes);
  auto request = vsr::decode_request(*header, body->view());
  const auto operation = static_cast<vsr::Operation>(header->operation);
  const bool is_read = operation == vsr::Operation::kRead;
  if (!request) {
    services_.faults.count("malformed");
    if (!services_.broker.profile().answers_bad_batch) {
      if (operation == vsr::Operation::kSendMessages) return;
      if (is_read && header->code == kPoll && caller_.user) return answer_empty_poll(*header);
    }
    base::Bytes refusal = vsr::encode_refusal(*header, request.error());
    if (!refusal.empty()) wire_.answer(std::move(refusal));
    return;
  }
  services_.faults.count(iggy::name_of(*request));
  if (std::holds_alternative<iggy::Ping>(*request))
    return wire_.answer(vsr::encode_reply(*request, *header, iggy::Done{}, services_.commit));
  if (operation == vsr::Operation::kRegister) return login(*header, *request);
  if (operation == vsr::Operation::kLogout) return logout(*header);
  if (is_read && !caller_.user) return wire_.answer(vsr::encode_status(*header, status::kUnauthenticated));
  if (!is_read && !is_bound()) return evict(kNoSession);
  if (std::holds_alternative<iggy::SendMessages>(*request)) return send(*header, *request, std::move(body));
  if (std::holds_alternative<iggy::PollMessages>(*request)) return poll(*header, *request);
  if (std::holds_alternative<iggy::GetClusterMetadata>(*request))
    return wire_.answer(vsr::encode_reply(*request, *header, services_.cluster(), services_.commit));
  if (!is_read) {
    if (services_.broker.writer_is_dead()) return;
    if (!services_.nodes.takes_metadata(services_.node)) return refuse_with(*header, status::kNotAccepted);
    ++services_.commit;
  }
  Outcome<iggy::Reply> answer = services_.broker.handle(caller_, *request);
  if (!answer) return refuse_with(*header, answer.error());
  const auto* get = std::get_if<iggy::GetTopic>(&*request);
  auto* details = std::get_if<iggy::TopicDetails>(&*answer);
  if (get != nullptr && details != nullptr) services_.nodes.shorten(services_.node, *get, *details);
  wire_.answer(vsr::encode_reply(*request, *header, *answer, services_.commit));
}

void VsrSession::refuse_with(const vsr::RequestHeader& header, std::uint32_t code) {
  const auto operation = static_cast<vsr::Operation>(header.operation);
  const bool of_offset =
      operation == vsr::Operation::kStoreConsumerOffset || operation == vsr::Operation::kDeleteConsumerOffset;
  const bool committed = vsr::is_result_framed(operation) && !of_offset && !is_admission_refusal(code);
  wire_.answer(committed ? vsr::encode_result(header, code) : vsr::encode_status(header, code));
}

void VsrSession::login(const vsr::RequestHeader& header, const iggy::Request& request) {
  if (services_.broker.writer_is_dead()) return;
  if (!is_bound()) {
    const auto* by_password = std::get_if<iggy::LoginUser>(&request);
    const auto* by_token = std::get_if<iggy::LoginToken>(&request);
    const Outcome<std::uint32_t> user = by_password != nullptr ? services_.broker.login(caller_, *by_password)
                                                               : services_.broker.login(caller_, *by_token);
    if (!user) {
      const std::uint8_t reason =
          by_token != nullptr ? (user.error() == status::kUserInactive ? kUserIsInactive : kBadToken) : kBadCredentials;
      return wire_.answer(vsr::encode_eviction(header.client, {0, 0, reason}));
    }
    for (Caller* other : services_.broker.callers())
      if (other != &caller_ && other->vsr_client == header.client) other->vsr_client = {};
    caller_.vsr_client = header.client;
    caller_.listed = true;
    bound_ = true;
    session_ = ++services_.commit;
  }
  wire_.answer(vsr::encode_reply(request, header,
                                 iggy::LoggedIn{.user_id = *caller_.user,
                                                .session = session_,
                                                .protocol_word = vsr::kProtocolWord,
                                                .server_version = std::string(services_.broker.profile().server)},
                                 session_));
}

void VsrSession::logout(const vsr::RequestHeader& header) {
  if (caller_.user) {
    services_.broker.logout(caller_);
    caller_.listed = false;
    bound_ = false;
    caller_.vsr_client = {};
    ++services_.commit;
  }
  wire_.answer(vsr::encode_reply(iggy::Logout{}, header, iggy::Done{}, services_.commit));
}

void VsrSession::poll(const vsr::RequestHeader& header, const iggy::Request& request) {
  if (services_.faults.next_poll_is_refused())
    return wire_.answer(vsr::encode_status(header, services_.faults.poll_refuse_status));
  Outcome<PollResult> polled = services_.nodes.poll(services_.node, caller_, std::get<iggy::PollMessages>(request));
  if (!polled) return wire_.answer(vsr::encode_status(header, polled.error()));
  // The head as the codec writes it, then the stored batches as they are.
  base::Bytes head = vsr::encode_reply(
      request, header,
      iggy::PolledMessages{.partition = polled->partition, .current_offset = polled->current_offset, .batch = {}},
      services_.commit);
  std::size_t size = head.size();
  for (const Chunk& chunk : polled->chunks) size += chunk.bytes.size();
  base::store(head.data() + 48, static_cast<std::uint32_t>(size));
  base::store(head.data() + vsr::kHeaderSize + 12, polled->count);
  wire_.answer(std::move(head), std::move(polled->chunks));
}

void VsrSession::send(const vsr::RequestHeader& header, const iggy::Request& request,
                      std::shared_ptr<base::Buffer> body) {
  if (services_.broker.writer_is_dead()) return;
  if (!services_.nodes.takes_sends(services_.node))
    return wire_.answer(vsr::encode_status(header, status::kNotAccepted));
  const SendFate fate = services_.faults.next_send();
  if (fate == SendFate::kCutBefore) return wire_.cut();
  if (fate == SendFate::kRefused) return wire_.answer(vsr::encode_status(header, services_.faults.refuse_status));
  const Outcome<SendResult> sent =
      services_.broker.send(caller_, std::get<iggy::SendMessages>(request), std::move(body), header.request);
  if (fate == SendFate::kCutAfter) return wire_.cut();
  if (fate == SendFate::kDropReply || services_.broker.writer_is_dead()) return;
  if (!sent) {
    const bool missing = sent.error() == status::kStreamNotFound || sent.error() == status::kTopicNotFound ||
                         sent.error() == status::kPartitionNotFound;
    return wire_.answer(vsr::encode_status(header, missing ? status::kNotFound : sent.error()));
  }
  iggy::SendConfirmed confirmed{.base_offset = sent->base_offset,
                                .duplicate = sent->duplicate,
                                .stream = sent->stream,
                                .topic = sent->topic,
                                .partition = sent->partition};
  if (sent->duplicate) confirmed.base_offset.reset();
  wire_.answer(vsr::encode_reply(request, header, confirmed, services_.commit));
}

}  // namespace

std::unique_ptr<Session> make_vsr_session(Services& services, Wire& wire, std::string peer) {
  return std::make_unique<VsrSession>(services, wire, std::move(peer));
}

std::unique_ptr<Session> make_session(Services& services, Wire& wire, std::string peer) {
  return services.broker.profile().dialect == iggy::Dialect::kLegacy
             ? make_legacy_session(services, wire, std::move(peer))
             : make_vsr_session(services, wire, std::move(peer));
}

}  // namespace sandbox
