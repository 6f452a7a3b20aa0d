// Which parameters of a request carry a credential, judged by their name. What a stranger's request contains is passed on, to
// upstream providers and to actions, and a list of names would have gaps.

/** The last word of the name of a credential: `client_secret`, `session_transfer_token`, `code_verifier`, `passwd`. */
const CREDENTIAL_WORDS: ReadonlySet<string> = new Set(
  `apikey assertion cookie credential credentials csrf jwt otp pass passcode passphrase passwd password pin proof pwd secret
  session signature ticket token totp verifier`.split(/\s+/),
);

/** Codes that prove something. Other names end in `code`, too: `country_code`, `promo_code`. */
const SECRET_CODE =
  /^(?:(?:auth|authorization|binding|connect|device|login|mfa|oob|otp|recovery|sms|user|verification)_?)?code$/;

/** Credentials, and messages that contain some, whose names do not say so. */
const OTHERS: ReadonlySet<string> = new Set([
  'api_key',
  'auth_req_id',
  'authn_response',
  'id_token_hint',
  'request',
  'request_uri',
  'samlrequest',
  'samlresponse',
]);

/** Whether a parameter with this name carries a credential, or a message that contains one. */
export function isCredentialName(name: string): boolean {
  const lower = name.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
  const last = lower.split(/[^a-z0-9]+/).findLast((word) => word !== '') ?? '';
  return (
    CREDENTIAL_WORDS.has(last) ||
    SECRET_CODE.test(lower) ||
    OTHERS.has(lower) ||
    OTHERS.has(name.toLowerCase())
  );
}
