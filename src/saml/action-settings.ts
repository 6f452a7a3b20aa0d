// What actions asked for of a response, within what the application's configuration allows.
import type { AssertionAsked } from '../actions/assertion-asked.ts';
import type { Config } from '../tenant/config.ts';
import type { Attribute } from './attributes.ts';
import { isOwnName } from './audience.ts';
import type { ServiceProvider } from './service-provider.ts';

/**
 * A service provider with the options that actions asked for.
 * @returns undefined where one would be another's: an audience that may be another application's, an address that is not
 *   among the application's own.
 */
export async function withSettings(
  config: Config,
  sp: ServiceProvider,
  asked: AssertionAsked | undefined,
): Promise<ServiceProvider | undefined> {
  const { audience, recipient, destination } = asked?.settings ?? {};
  const isOwn = [recipient, destination].every((one) => one === undefined || sp.acsUrls.includes(one));
  if (!isOwn) return undefined;
  if (audience !== undefined && audience !== sp.audience && !(await isOwnName(config, sp, audience)))
    return undefined;
  return { ...sp, ...asked?.settings };
}

/** Attributes with those that actions set, and without those that they left out. */
export function withAttributes(
  attributes: readonly Attribute[],
  asked: AssertionAsked | undefined,
): Attribute[] {
  const set = asked?.attributes ?? {};
  const others = attributes.filter(({ name }) => !Object.hasOwn(set, name));
  const added = Object.entries(set).flatMap(([name, value]): Attribute[] => {
    const values = value === null ? [] : [value].flat();
    return values.length === 0 ? [] : [{ name, values, naming: values[0] }];
  });
  return [...others, ...added];
}
