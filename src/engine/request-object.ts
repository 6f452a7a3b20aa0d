// Request objects (OpenID Connect Core §6.1) are refused, but the refusal goes where the object asks for.
import { decodeJwt, errors as joseErrors } from 'jose';

const ANSWER_PARAMETERS = ['redirect_uri', 'response_mode', 'response_type', 'state'] as const;

/**
 * The parameters in a request object that say where to answer; they take precedence over the query's (§6.1). Not verified,
 * because only the refusal uses them, and the redirect_uri must be registered anyway.
 * @param object the `request` parameter.
 * @returns empty when it cannot be read, for instance when encrypted.
 */
export function answerParameters(object: unknown): Record<string, string> {
  if (typeof object !== 'string') return {};
  try {
    const claims = decodeJwt(object);
    return Object.fromEntries(
      ANSWER_PARAMETERS.flatMap((name) => {
        const value = claims[name];
        return typeof value === 'string' ? [[name, value]] : [];
      }),
    );
  } catch (thrown) {
    if (thrown instanceof joseErrors.JOSEError) return {};
    throw thrown;
  }
}
