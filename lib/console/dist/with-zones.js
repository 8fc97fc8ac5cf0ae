import{Q as t}from"./shell.js";var n=(()=>{try{return["UTC",...Intl.supportedValuesOf("timeZone").filter(e=>e!=="UTC")]}catch{return["UTC",t]}})();export{n as a};
