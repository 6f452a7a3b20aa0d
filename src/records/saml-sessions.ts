// What service providers were told.
import type { Stored } from './record.ts';

/** A session that a SAML service provider was told of; `id` is its SessionIndex, which that one alone knows. */
export interface SamlSessionRecord extends Stored {
  client_id: string;
  /** The browser session's own id, which all its applications share. */
  session_uid: string;
  user_id: string;
  /** The service provider's entity ID, where it asked for the login. */
  issuer?: string;
  /** `transient` is the name of this session alone, whichever was given. */
  name_id: { value: string; format: string; spNameQualifier?: string; transient: string };
}

/** Service providers that are being told, one by one, of a logout; `id` is a hash of the way's next ticket. */
export interface SamlLogoutRecord extends Stored {
  /** The session that is over. */
  sid: string;
  return_to: string;
  /** The first is asked now. */
  waiting: {
    client_id: string;
    issuer?: string;
    session_index: string;
    name_id: SamlSessionRecord['name_id'];
  }[];
  /** The ID of the LogoutRequest that waits for its answer. */
  request?: string;
  /** The mark of the browser that was sent with it, which the answer must come from. */
  browser?: string;
  /** Whether one of them did not log the user out. */
  failed: boolean;
  /** Whether a service provider waits to hear how it went. */
  awaited: boolean;
}
