// Text messages as a second factor.
import { requiredField } from '../../../http/body.ts';
import { AuthError } from '../../../http/errors.ts';
import { countryOf } from '../../../http/languages.ts';
import { countries, numberOf } from './countries.ts';
import { messageFactor } from './message.ts';

export const sms = messageFactor({
  channel: 'sms',
  strength: 2,
  message: 'mfa_sms',
  requestedAs: ['oob'],
  addressOf: (fields) => requiredField(fields, 'phone_number'),
  destinationOf: (authenticator) => authenticator.phone_number,
  nameOf: ({ phone_number: phone }) =>
    phone && `${'X'.repeat(Math.max(0, phone.length - 5))}${phone.slice(-4)}`,
  fieldsOf: (address) => {
    const phoneNumber = numberOf(address);
    if (phoneNumber !== undefined) return { phone_number: phoneNumber };
    throw new AuthError(400, 'invalid_phone_number', 'phone_number must be a phone number in E.164 format.');
  },
  formAddressOf: (address, country) => numberOf(address, country) ?? address,
  // Country names are in the page's language. The country that the browser's languages suggest is selected.
  form: ({ views }, ctx, { uiLocales }, address = '') => {
    const all = countries(views.locale(ctx, uiLocales).tag);
    const likely = countryOf([ctx.get('Accept-Language')]);
    return { address, countries: all, country: all.some(({ code }) => code === likely) ? likely : 'US' };
  },
});
