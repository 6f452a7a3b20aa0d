// Applies what actions set for a response, within what the application's configuration allows.
import type { AssertionChanges } from '../actions/assertion-methods.ts';
import type { Config } from '../tenant/config.ts';
import type { Attribute } from './attributes.ts';
import { isOwnName } from './audience.ts';
import type { ServiceProvider } from './service-provider.ts';

/**
 * Returns a service provider with the options that actions set.
 * @returns undefined when an option is not the application's own: an audience that may be another application's, or
 *   a URL that is not among its assertion consumer URLs.
 */
export async function withSettings(
  config: Config,
  sp: ServiceProvider,
  assertion: AssertionChanges | undefined,
): Promise<ServiceProvider | undefined> {
  const { audience, recipient, destination } = assertion?.settings ?? {};
  const isRegistered = [recipient, destination].every((one) => one === undefined || sp.acsUrls.includes(one));
  if (!isRegistered) return undefined;
  if (audience !== undefined && audience !== sp.audience && !(await isOwnName(config, sp, audience)))
    return undefined;
  return { ...sp, ...assertion?.settings };
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
