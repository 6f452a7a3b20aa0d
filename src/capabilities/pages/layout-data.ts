// Selects what the layout shows of the tenant, and which images a page contains.
import type { Frozen } from '../../records/record.ts';
import type { TenantRecord } from '../../records/tenant.ts';

/** The tenant's data in the layout. */
interface TenantLayout {
  name: string;
  logo: string | undefined;
  favicon: string | undefined;
  terms: string | undefined;
  privacy: string | undefined;
  support: string | undefined;
}

/** The parts of models that may contain images. */
interface WithLogos {
  client?: { logo?: string };
  connections?: readonly { logo?: string }[];
  others?: readonly { logo?: string }[];
}

/** Returns the addresses of the images on a page. */
export function imagesOf(
  { logo, favicon }: TenantLayout,
  { client, connections = [], others = [] }: WithLogos,
): string[] {
  const logos = [logo, favicon, ...[client ?? {}, ...connections, ...others].map((one) => one.logo)];
  return logos.filter((address) => address !== undefined);
}

/** Returns the tenant's data for the layout, without addresses of other kinds than expected. */
export function describeTenant(
  tenant: Frozen<TenantRecord>['tenant'],
  branding: Frozen<TenantRecord>['branding'],
): TenantLayout {
  return {
    name: tenant.friendly_name,
    logo: addressOf(IMAGE, branding.logo_url ?? tenant.picture_url),
    favicon: addressOf(IMAGE, branding.favicon_url),
    terms: addressOf(LINK, branding.terms_url),
    privacy: addressOf(LINK, branding.privacy_url),
    support: addressOf(LINK, tenant.support_url),
  };
}

const LINK = /^https?:/i;
const IMAGE = /^(https?:|data:image\/)/i;

/** Returns the address if it is of that kind; undefined for `javascript:` and the like. */
function addressOf(kind: RegExp, address: string | undefined): string | undefined {
  return address !== undefined && kind.test(address) ? address : undefined;
}
