// Reads the parameters of a request to /bc-authorize, from its form or from a request object that its application
// has signed (CIBA Core §7.1.1).
import { AuthError } from '../../http/errors.ts';
import type { Client } from '../../records/collections.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import { OBJECT_REUSED, recordObjectUse } from '../base/request-replay.ts';
import { backchannelFault } from '../client/applications.ts';
import { readBackchannelObject } from './received-request.ts';

export interface BackchannelParameters {
  issuer: string;
  store: Store;
  /** The clock that dates in JWTs are compared with. */
  wallClock: Clock;
}

/**
 * Returns the parameters of a request. With a request object only its parameters count, and each object is accepted
 * once.
 * @param form the form without the client's authentication.
 * @throws AuthError 400 `invalid_request` (CIBA Core §13), also for a request that is weaker than the client's
 *   compliance level allows.
 */
export async function backchannelParameters(
  deps: BackchannelParameters,
  client: Client,
  form: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const { request, ...plainParameters } = form;
  const isSigned = request !== undefined;
  const parameters = isSigned ? await readObject(deps, client, request, plainParameters) : plainParameters;
  if (!isSigned && client.signed_request_object?.required === true)
    throw refusal('The application must send a signed request object');
  const fault = backchannelFault(client, { parameters, isSigned });
  if (fault !== undefined) throw refusal(fault);
  return parameters;
}

async function readObject(
  { issuer, store, wallClock }: BackchannelParameters,
  client: Client,
  request: string,
  plainParameters: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const [other] = Object.keys(plainParameters);
  if (other !== undefined) throw refusal(`${other} must be in the request object, not beside it`);
  const object = await readBackchannelObject(request, client, { issuer, now: wallClock() }).catch(
    (thrown) => {
      // CIBA has no error of its own for objects (§13).
      throw thrown instanceof AuthError ? refusal(thrown.error_description) : thrown;
    },
  );
  const texts = Object.entries(object.parameters).map(([name, value]): [string, string] => {
    if (typeof value !== 'string') throw refusal(`Invalid parameter: ${name.slice(0, 100)}`);
    return [name, value];
  });
  if (!(await recordObjectUse(store, client.client_id, object))) throw refusal(OBJECT_REUSED);
  return Object.fromEntries(texts);
}

function refusal(description: string): AuthError {
  return new AuthError(400, 'invalid_request', description);
}
