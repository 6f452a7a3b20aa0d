// Warnings about valid but risky SAML addons.

import { bindingWarnings, type SamlpAddon } from '../records/samlp.ts';
import type { TenantFile } from '../records/tenant.ts';

/** Returns a warning for each setting that trusts more than needed, or is ambiguous. */
export function samlWarnings({ clients }: Pick<TenantFile, 'clients'>): string[] {
  const providers = clients.flatMap(({ addons, name }, index) =>
    addons?.samlp === undefined ? [] : [{ name, addon: addons.samlp, at: `clients[${index}].addons.samlp` }],
  );
  return providers.flatMap((provider) => {
    const others = providers.filter((other) => other !== provider);
    const bindings = bindingWarnings(provider.name, provider.addon).map(
      (warning) => `${provider.at}.binding: ${warning}`,
    );
    return [...trustWarnings(provider), ...bindings, ...audienceWarnings(provider, others)];
  });
}

interface Provider {
  name: string;
  addon: SamlpAddon;
  /** Its path in the file. */
  at: string;
}

function trustWarnings({ name, addon, at }: Provider): string[] {
  if (addon.allowUnverifiedIdentifiers !== true) return [];
  return [
    `${at}.allowUnverifiedIdentifiers: ${name} is told addresses that nobody proved: whoever signs up with somebody else's is taken for them there`,
  ];
}

function audienceWarnings({ name, addon, at }: Provider, others: readonly Provider[]): string[] {
  if (others.length === 0) return [];
  if (addon.audience === undefined) {
    return [
      `${at}.audience is not set: requests of ${name} are taken only if their Issuer can be no other SAML application's`,
    ];
  }
  const same = others.filter((other) => other.addon.audience === addon.audience).map((other) => other.name);
  if (same.length === 0) return [];
  return [`${at}.audience: what ${name} is sent is also good for ${same.join(', ')}, which has the same`];
}
