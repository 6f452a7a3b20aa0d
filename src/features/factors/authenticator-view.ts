// Authenticators as the MFA API shows them.
import type { Authenticator } from './authenticators.ts';
import type { FactorDependencies, StartedEnrollment } from './factor.ts';
import { factorOf } from './policy.ts';

type ViewDependencies = Pick<FactorDependencies, 'config' | 'factors'>;

/** Returns the answer to a started enrolment. Secrets in it are shown this once. */
export function associationView(
  deps: ViewDependencies,
  enrolled: StartedEnrollment,
): Record<string, unknown> {
  const { authenticator, secret, barcodeUri, oobCode, prompt, recoveryCode } = enrolled;
  const { factor, channel } = termsOf(deps, authenticator);
  return {
    authenticator_type: factor?.authenticatorType,
    // The API contract has the first name, SDKs read the second.
    ...(channel === undefined ? {} : { oob_channels: channel, oob_channel: channel }),
    ...(oobCode === undefined ? {} : { oob_code: oobCode }),
    ...(prompt ? { binding_method: 'prompt' } : {}),
    ...(secret === undefined ? {} : { secret }),
    ...(barcodeUri === undefined ? {} : { barcode_uri: barcodeUri }),
    ...(recoveryCode === undefined ? {} : { recovery_codes: [recoveryCode] }),
    id: authenticator.id,
  };
}

/** Returns an authenticator without its secrets, as the list of authenticators shows it. */
export function authenticatorView(
  deps: ViewDependencies,
  authenticator: Authenticator,
): Record<string, unknown> {
  const { id, active } = authenticator;
  const { factor, channel } = termsOf(deps, authenticator);
  const name = factor?.nameOf?.(authenticator);
  return {
    id,
    authenticator_type: factor?.authenticatorType,
    active,
    type: factor?.type,
    ...(channel === undefined ? {} : { oob_channel: channel }),
    ...(name === undefined ? {} : { name }),
  };
}

/** Returns the factor and channel that describe an authenticator to applications. */
function termsOf(deps: ViewDependencies, authenticator: Authenticator) {
  const factor = factorOf(deps, authenticator);
  return { factor, channel: factor?.channel?.(deps.config.settings().vendor_channel) };
}
