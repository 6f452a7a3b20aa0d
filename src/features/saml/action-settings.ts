// Applies what actions set for a response, within what the application's configuration allows.
import { createPublicKey } from 'node:crypto';
import type { AssertionChanges } from '../../capabilities/actions/assertion-methods.ts';
import { rsaCertificate, rsaPrivateKey, rsaPublicKey } from '../../records/samlp.ts';
import type { Config } from '../../tenant/config.ts';
import type { Attribute } from './attributes.ts';
import { isOwnName } from './audience.ts';
import type { ServiceProvider } from './service-provider.ts';

/** Settings that actions may have set. */
type Settings = { [S in keyof AssertionChanges['settings']]?: AssertionChanges['settings'][S] | undefined };

/**
 * @returns undefined when the options cannot be used: an audience that may be another application's, a URL that is not
 *   among its assertion consumer URLs, a certificate that is not that of the key, two different keys to encrypt for, or
 *   a certificate that its request was not verified with.
 */
export async function withSettings(
  config: Config,
  sp: ServiceProvider,
  { settings }: Pick<AssertionChanges, 'settings'>,
  { isRequested }: { isRequested: boolean },
): Promise<ServiceProvider | undefined> {
  const { cert, key, signingCert, encryptionCert, encryptionPublicKey, ...options } = settings;
  const { audience, recipient, destination } = options;
  const isRegistered = [recipient, destination].every((one) => one === undefined || sp.acsUrls.includes(one));
  if (!isRegistered) return undefined;
  if (audience !== undefined && audience !== sp.audience && !(await isOwnName(config, sp, audience)))
    return undefined;
  // The request was read before the action ran. It counts as signed with the key if the application's own
  // configuration has demanded that.
  const isVerified = signingCert === undefined || !isRequested || isVerifiedWith(sp, signingCert);
  const signing = signingKeyOf({ cert, key });
  const encryption = encryptionKeyOf({ encryptionCert, encryptionPublicKey });
  if (!isVerified || signing === 'unusable' || encryption === 'unusable') return undefined;
  return { ...sp, ...options, ...signing, ...encryption };
}

function isVerifiedWith({ verifier }: ServiceProvider, signingCert: string): boolean {
  const key = rsaPublicKey(signingCert);
  return verifier?.publicKeys.some((one) => one.equals(key)) === true;
}

function signingKeyOf({
  cert,
  key,
}: Pick<Settings, 'cert' | 'key'>): Pick<ServiceProvider, 'signingKey'> | 'unusable' {
  if (cert === undefined && key === undefined) return {};
  if (cert === undefined || key === undefined) return 'unusable';
  const privateKey = rsaPrivateKey(key);
  if (!createPublicKey(privateKey).equals(rsaPublicKey(cert))) return 'unusable';
  return { signingKey: { certificate: rsaCertificate(cert), privateKey } };
}

function encryptionKeyOf({
  encryptionCert,
  encryptionPublicKey,
}: Pick<Settings, 'encryptionCert' | 'encryptionPublicKey'>):
  | Partial<Pick<ServiceProvider, 'encryptionKey'>>
  | 'unusable' {
  const [first, ...others] = [encryptionCert, encryptionPublicKey].flatMap((text) =>
    text === undefined ? [] : [rsaPublicKey(text)],
  );
  if (first === undefined) return {};
  return others.every((one) => one.equals(first)) ? { encryptionKey: first } : 'unusable';
}

/** Returns the attributes with those that actions set, and without those that they removed. */
export function withAttributes(
  attributes: readonly Attribute[],
  assertion: AssertionChanges | undefined,
): Attribute[] {
  const overrides = assertion?.attributes ?? {};
  const others = attributes.filter(({ name }) => !Object.hasOwn(overrides, name));
  const added = Object.entries(overrides).flatMap(([name, value]): Attribute[] => {
    const values = value === null ? [] : [value].flat();
    return values.length === 0 ? [] : [{ name, values, nameIdValue: values[0] }];
  });
  return [...others, ...added];
}
