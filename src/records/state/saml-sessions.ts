// Sessions and logouts at SAML service providers.
import type { Stored } from '../base/record.ts';

/** A session at a SAML service provider; `id` is its SessionIndex, which no other service provider knows. */
export interface SamlSessionRecord extends Stored {
  client_id: string;
  /** The id of the browser session, which all its clients share. */
  session_uid: string;
  user_id: string;
  /** The service provider's entity ID, if it requested the login. */
  issuer?: string;
  /** The name identifier. `transient` is unique to this session, whatever the format. */
  name_id: { value: string; format: string; spNameQualifier?: string; transient: string };
}

/** A logout that visits service providers one after another; `id` is a hash of the ticket for the next step. */
export interface SamlLogoutRecord extends Stored {
  /** The id of the session that ended. */
  sid: string;
  return_to: string;
  /** The service providers that remain; the first is being asked. */
  waiting: {
    client_id: string;
    issuer?: string;
    session_index: string;
    name_id: SamlSessionRecord['name_id'];
  }[];
  /** The ID of the LogoutRequest whose response is awaited. */
  request?: string;
  /** Identifies the browser that carried the request; the response must come from it. */
  browser?: string;
  /** Whether a service provider failed to log the user out. */
  failed: boolean;
  /** Whether a service provider awaits the result. */
  awaited: boolean;
}
