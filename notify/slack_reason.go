package notify

// slackReason sorts the words with which Slack refuses, from both the Web API
// (docs.slack.dev/reference/methods/chat.postMessage, chat.update) and incoming
// webhooks (Slack's changelog of 2016-05-17). It reports false for other words.
func slackReason(word string) (Reason, bool) {
	switch word {
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return RateLimited, true
	case "internal_error", "service_unavailable", "fatal_error", "request_timeout", "rollup_error", "team_added_to_org", "accesslimited":
		return Server, true
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "no_permission",
		"missing_scope", "not_allowed_token_type", "invalid_token", "org_login_required", "ekm_access_denied",
		"team_access_not_granted", "access_denied", "action_prohibited", "posting_to_general_channel_denied",
		"restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel",
		"restricted_action_non_threadable_channel", "as_user_not_supported", "team_disabled", "two_factor_setup_required":
		return Auth, true
	case "channel_not_found", "not_in_channel", "is_archived", "channel_is_archived", "no_service", "no_service_id",
		"no_team", "user_not_found", "message_not_found", "thread_not_found", "cant_update_message",
		"edit_window_closed", "cannot_reply_to_message":
		return NotFound, true
	case "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "invalid_payload", "no_text",
		"invalid_arguments", "invalid_arg_name", "invalid_form_data", "too_many_attachments", "invalid_attachments",
		"metadata_too_large", "block_mismatch", "missing_text_or_fallback_or_attachments":
		return InvalidPayload, true
	}
	return "", false
}

// rootGone tells whether a word means that the message to update or to answer
// cannot be: the incident is then posted afresh.
func rootGone(word string) bool {
	switch word {
	case "message_not_found", "channel_not_found", "cant_update_message", "edit_window_closed", "thread_not_found",
		"cannot_reply_to_message", "msg_too_long", "restricted_action_non_threadable_channel":
		return true
	}
	return false
}
