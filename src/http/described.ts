// Parameters as a schema and a sentence for people: what the document of the API says of them.
import { z } from 'zod';

/** A text that must be there. */
export function required(description: string) {
  return z.string().describe(description);
}

/** A text that may be left out. */
export function optional(description: string) {
  return z.string().optional().describe(description);
}

/** A text that is not checked where the others are: what is wrong with it has words of its own. */
export function unchecked(description: string, type: string | string[] = 'string') {
  return z.unknown().optional().meta({ type, description });
}

/** How an application says in a body who it is, if not by HTTP Basic (RFC 6749 §2.3.1, RFC 7523 §2.2). */
export const CLIENT_FIELDS = {
  client_id: unchecked('The application.'),
  client_secret: unchecked('Its secret, where it has one and sends no `Authorization` header.'),
  client_assertion: unchecked('A JWT signed with its key (RFC 7523), in place of a secret.'),
  client_assertion_type: unchecked('`urn:ietf:params:oauth:client-assertion-type:jwt-bearer`'),
};
