// Failed proofs of who somebody is, whatever way in (password grant, hosted page, passwordless, MFA):
// counted per account and address, and per address across accounts.

/** Whose proof is tried, and from where. */
export interface Attempt {
  /** The connection's name. */
  connection: string;
  /** E-mail address, phone number or username, as typed. */
  identifier: string;
  ip: string;
}

export interface Attempts {
  /**
   * Asked before a proof is looked at.
   * @throws AuthError 429 `too_many_attempts` when the account is locked for this address, or the address is
   *   throttled; whether there is such an account makes no difference.
   */
  admit(attempt: Attempt): Promise<void>;
  /** The proof was wrong. */
  failed(attempt: Attempt): Promise<void>;
  /** The proof was right: the count of the account from this address starts anew. */
  succeeded(attempt: Attempt): Promise<void>;
}
