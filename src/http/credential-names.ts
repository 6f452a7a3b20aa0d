// Which parameters of a request carry a credential, judged by their name. What a stranger's request contains is passed on, to
// upstream providers and to actions, and a list of names would have gaps.

/** The last word of the name of a credential: `client_secret`, `session_transfer_token`, `code_verifier`, `passwd`. */
const CREDENTIAL_WORDS: ReadonlySet<string> = new Set(
  `apikey assertion cookie credential credentials csrf jwt otp pass passcode passphrase passwd password pin proof pwd secret
  session signature ticket token totp verifier`.split(/\s+/),
);

/** Codes that prove something, and keys. Other names end so, too: `country_code`, `promo_code`, `sort_key`. */
const CREDENTIAL_ENDINGS = [
  /^(?:(?:auth|authorization|binding|connect|device|login|mfa|oob|otp|recovery|sms|user|verification)_?)?code$/,
  /(?:^|_)(?:access|api|private|secret|signing)_key$/,
];

/** Credentials, and messages that contain some, whose names do not say so. */
const OTHERS: ReadonlySet<string> = new Set([
  'auth_req_id',
  'authn_response',
  'id_token_hint',
  'repeat',
  'request',
  'request_uri',
  'samlrequest',
  'samlresponse',
]);

/** Whether a parameter with this name carries a credential, or a message that contains one. */
export function isCredentialName(name: string): boolean {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
  const joined = words.join('_');
  return (
    CREDENTIAL_WORDS.has(words.at(-1) ?? '') ||
    CREDENTIAL_ENDINGS.some((ending) => ending.test(joined)) ||
    OTHERS.has(joined) ||
    OTHERS.has(name.toLowerCase())
  );
}
