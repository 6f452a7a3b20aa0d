// Usernames as identifiers, as far as RFC 8265 §3.3 goes beyond the letters that the hosted service allows.
// docs/understand/decisions/users-linking.md#new-usernames-follow-rfc-8265-as-far-as-it-keeps-names-apart

const LETTERS = /^[\p{L}\p{Nd}_+\-.!#$^`~@']+$/u;

/**
 * Letters that nobody sees, and old jamo, which look like other syllables (RFC 8264 §9.13, §9.9). A name with one looks
 * like that of somebody else.
 */
const DECEPTIVE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\u1100-\u11ff\ua960-\ua97c\ud7b0-\ud7fb]/u;

const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Samaritan}\p{Script=Mandaic}\p{Script=Adlam}]/u;

/** Returns whether a name has letters that make it look like another, or like none. */
export function isDeceptive(username: string): boolean {
  return DECEPTIVE.test(username);
}

/** Returns whether a new user may have a name. Users who have another one keep it, and log in with it. */
export function isUsername(name: string): boolean {
  return LETTERS.test(name) && !isDeceptive(name) && hasOwnForms(name) && hasOneDirection(name);
}

/** Whether no letter is a form of another, such as one of full width or a ligature (RFC 8264 §9.17, RFC 8265 §3.3.1). */
const hasOwnForms = (name: string) => name.normalize('NFKC') === name.normalize('NFC');

/**
 * The rule of direction (RFC 5893 §2), without the fine print of digits: letters of both directions in one name are shown
 * in an order in which they were not typed.
 */
function hasOneDirection(name: string): boolean {
  const letters = name.match(/\p{L}/gu) ?? [];
  const fromRight = letters.filter((one) => RIGHT_TO_LEFT.test(one)).length;
  return fromRight === 0 || (fromRight === letters.length && RIGHT_TO_LEFT.test([...name][0] ?? ''));
}
