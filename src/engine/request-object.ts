// Request objects (OpenID Connect Core §6.1): none is taken, but the refusal goes where and how the object asks for.
import { decodeJwt, errors as joseErrors } from 'jose';

const ANSWER_PARAMETERS = ['redirect_uri', 'response_mode', 'response_type', 'state'] as const;

/**
 * The parameters in a request object that say where a request is answered; they come before those beside it (§6.1).
 * It is not verified, and nothing but the refusal comes of it: the redirect_uri must be the application's, as ever.
 * @param object the `request` parameter.
 * @returns none for what cannot be read, such as an encrypted object.
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
