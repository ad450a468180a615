// Numbers by their digits, as the server compares them (digitsOf in task.go): testdata/digits.json holds the two equal.

const most = 15; // as many as a number in international form has

/** A text with 0 to 9 for the decimal digits of other scripts, which Unicode has in rows of ten. */
export function asciiDigits(text: string): string {
  return text.replace(/\p{Nd}/gu, (d) => {
    const code = d.codePointAt(0)!;
    let first = code;
    while (/^\p{Nd}$/u.test(String.fromCodePoint(first - 1))) first--;
    return String((code - first) % 10);
  });
}

/** The last digits of a number, of whichever script. Of fewer than three it stands for nobody: ''. */
export function digitsOf(number: string | undefined): string {
  const digits = asciiDigits(number ?? '').replace(/\D/g, '');
  return digits.length < 3 ? '' : digits.slice(-most);
}

/** A tel: link, or null when there is nothing to dial. */
export function telLink(mobile: string | undefined): string | null {
  const digits = asciiDigits(mobile ?? '').replace(/[^\d+*#,;]/g, '');
  return /\d/.test(digits) ? 'tel:' + digits.replace(/#/g, '%23') : null;
}
